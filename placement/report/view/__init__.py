"""A window on placements: a local web page that shows them, computes the exact cost of each move and saves the result.

`session` holds a placement that is being changed, `messages` answers the page's requests, `server` serves the page, and
`static/` is the page itself.
"""
