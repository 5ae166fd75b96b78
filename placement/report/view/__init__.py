"""A window on placements: a local web page that shows them, prices every move exactly and gives them back.

`session` is a placement that is being changed, `messages` what the page may ask of it, `application` the server,
`static/` the page.
"""
