"use strict";
// By the codes with which the server closes a session.
const REASONS = {
  1006: "The connection to the server was lost. This page comes back by itself.",
  1009: "More came at once than a session takes.",
  4000: "The server was stopped. This page comes back with it.",
  4001: "No key came for a long time.",
  4002: "The application failed; the server's terminal says why.",
  4003: "This page was opened again, and that one goes on.",
};
const COMES_BACK = new Set([1006, 4000]);
const AGAIN_MS = 2000;
// The seat: the same as long as the tab is open, also after it was loaded again.
const newName = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
const tab = (sessionStorage.tab ??= newName());
const find = (selector) => document.querySelector(selector);

let socket;
let state = {};
let cells = [80, 24]; // the terminal's columns and lines
let isScaling = false;
const say = (...said) => socket?.send(JSON.stringify(said));
const isFollowing = () => state.is === "follows" || (state.is === "waits" && state.size);

window.WebSocket = class extends WebSocket {
  constructor(address) {
    const named = new URL(address);
    named.searchParams.set("tab", tab);
    super(named);
    socket = this;
    this.addEventListener("close", ({ code }) => {
      find(".ended .reason").textContent = REASONS[code] ?? "It was left.";
      if (COMES_BACK.has(code)) comeBack();
    });
    this.addEventListener("message", (event) => {
      if (event.isTrusted && typeof event.data !== "string") {
        event.stopImmediatePropagation(); // textual.js hears of it inflated, in turn
        const inflated = inflate(event.data);
        pictures = pictures.then(async () => this.dispatchEvent(new MessageEvent("message", { data: await inflated })));
      } else if (event.isTrusted) {
        const [kind, said] = JSON.parse(event.data);
        if (kind === "page") show(said);
      }
    });
  }
  // What textual.js sends: where nobody types, nothing that is typed; no size of our own making.
  send(text) {
    const [kind, said] = JSON.parse(text);
    if (kind === "resize") cells = [said.width, said.height];
    const isMeant = kind === "resize" ? !isScaling : kind !== "stdin" || !isFollowing();
    if (isMeant && this.readyState === WebSocket.OPEN) super.send(text);
  }
};

let pictures = Promise.resolve();
const inflate = (data) => new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();

// Try until the server answers, then load the page again: its seat is kept.
async function comeBack() {
  const reply = await fetch("./").catch(() => null);
  if (reply?.ok) location.reload();
  else setTimeout(comeBack, AGAIN_MS);
}

function show(said) {
  state = said;
  const { body } = document;
  const queue = `No place is free. You are number ${said.place} in the queue.`;
  const isPupil = Boolean(said.size) || said.is === "alone";
  body.classList.toggle("-waits", said.is === "waits" && !isPupil);
  find(".opening").textContent = said.is === "waits" && !isPupil ? queue : "shardviz opens …";
  find("footer").hidden = !isPupil;
  find(".place").textContent = {
    follows: "You follow the teacher.",
    waits: queue,
    alone: "You continue alone.",
  }[said.is];
  find(".take").textContent = { follows: "Take over (T)", waits: "Wait no more (T)", alone: "Follow the teacher (T)" }[said.is];
  ask(said.asked);
  scale();
}

function ask(asked) {
  find(".asked").hidden = !asked;
  if (!asked) return;
  const { question, choices, chosen, looked, answer } = asked;
  find(".question").textContent = question;
  find(".choices").replaceChildren(
    ...choices.map((choice) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = choice;
      button.disabled = looked || answer !== null;
      button.setAttribute("aria-pressed", choice === chosen);
      button.classList.toggle("right", choice === answer);
      button.addEventListener("click", () => say("predict", choice));
      return button;
    }),
  );
  find(".said").textContent =
    answer !== null
      ? chosen === null ? "" : chosen === answer ? `${chosen} is right.` : `You said ${chosen}.`
      : looked ? "You have seen the answer; it is no prediction any more."
      : chosen !== null ? "The teacher shows the answer; until then you may choose another."
      : "";
}

// The picture for a size, as large as the window has room for it; a terminal of one's own fills the window.
function scale() {
  const terminal = find("#terminal");
  const screen = find(".xterm-screen");
  const room = find(".window");
  if (!screen) return;
  const [width, height] = [screen.clientWidth / cells[0], screen.clientHeight / cells[1]];
  isScaling = Boolean(isFollowing());
  const [columns, lines] = isScaling ? state.size : [0, 0];
  terminal.style.width = isScaling ? `${Math.ceil(columns * width)}px` : "";
  terminal.style.height = isScaling ? `${Math.ceil(lines * height)}px` : "";
  const by = isScaling ? Math.min(room.clientWidth / terminal.offsetWidth, room.clientHeight / terminal.offsetHeight) : 1;
  terminal.style.transform = isScaling ? `scale(${by})` : "";
  window.onresize(); // textual.js fits the terminal to its element
}

// As large as the letters of the size that the server will choose may be.
function chooseFont() {
  const sizes = JSON.parse(document.body.dataset.sizes || "[]");
  // What a teacher shows on a projector has letters to be read from the last row.
  if (location.pathname.endsWith("/lead/")) find("#terminal").dataset.fontSize = Math.max(16, Math.min(40, innerWidth / 130 / 0.601));
  if (!sizes.length) return;
  const font = ([columns, lines]) => Math.min(innerWidth / columns / 0.601, (innerHeight - 48) / lines / 1.32);
  const fonts = sizes.map(font);
  const roomy = fonts.filter((size) => size >= 13);
  find("#terminal").dataset.fontSize = Math.max(8, Math.min(40, roomy.at(-1) ?? innerWidth / sizes[0][0] / 0.601));
}

// textual.js connects when the page has loaded, to the address that it finds here.
document.addEventListener("DOMContentLoaded", () => {
  const { body } = document;
  const terminal = find("#terminal");
  terminal.dataset.sessionWebsocketUrl = new URL("ws", location).href.replace(/^http/, "ws");
  chooseFont();
  const takeKeys = () => {
    if (!body.classList.contains("-closed")) terminal.querySelector("textarea")?.focus({ preventScroll: true });
  };
  addEventListener("focus", takeKeys);
  new MutationObserver(() => {
    takeKeys();
    if (body.classList.contains("-closed")) find(".ended a").focus();
  }).observe(body, { attributeFilter: ["class"] });
  const turn = () => {
    say(state.is === "follows" ? "take" : "follow");
    takeKeys();
  };
  find(".take").addEventListener("click", turn);
  addEventListener(
    "keydown",
    (event) => {
      if (!isFollowing() || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "T" || event.key === "t") turn();
      else if (/^[1-9]$/.test(event.key)) find(`.choices button:nth-child(${event.key})`)?.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  let due;
  addEventListener("resize", () => {
    if (!isFollowing()) return;
    clearTimeout(due);
    due = setTimeout(() => {
      isScaling = false;
      terminal.style.width = terminal.style.height = terminal.style.transform = "";
      window.onresize();
      scale();
    }, 200);
  });
});
