// The line to the server: questions with answers and deadlines, events, and finding back after a break.

const DEADLINE = 15000, FIRST_WAIT = 300, LONGEST_WAIT = 5000;

export class Link {
  // `onEvent(message)`, `onOpen()` after every (re)connection, `onBreak()`.
  constructor(address, { onEvent, onOpen, onBreak }) {
    Object.assign(this, { address, onEvent, onOpen, onBreak });
    this.waiting = new Map();
    this.number = 0;
    this.wait = FIRST_WAIT;
    this.connect();
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
  }

  get isOpen() {
    return this.socket.readyState === WebSocket.OPEN;
  }

  connect() {
    this.timer = undefined;
    this.socket = new WebSocket(this.address);
    this.socket.onopen = () => {
      this.wait = FIRST_WAIT;
      this.onOpen();
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = () => this.broke();
  }

  broke() {
    for (const { fail, timer } of this.waiting.values()) {
      clearTimeout(timer);
      fail(new Error("the server does not answer"));
    }
    this.waiting.clear();
    this.onBreak();
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
  }

  hurry() {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.connect();
  }

  take(message) {
    if (message.event) {
      this.onEvent(message);
      return;
    }
    const waiting = this.waiting.get(message.id);
    if (!waiting) return;
    this.waiting.delete(message.id);
    clearTimeout(waiting.timer);
    if (message.error === undefined) waiting.done(message.ok);
    else waiting.fail(new Error(message.error));
  }

  ask(what, values = {}) {
    return new Promise((done, fail) => {
      if (!this.isOpen) {
        fail(new Error("the server does not answer"));
        return;
      }
      const id = (this.number += 1);
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        fail(new Error(`${what}: the server has not answered for ${DEADLINE / 1000} s`));
      }, DEADLINE);
      this.waiting.set(id, { done, fail, timer });
      this.socket.send(JSON.stringify({ id, do: what, ...values }));
    });
  }
}
