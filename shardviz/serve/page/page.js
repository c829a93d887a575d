"use strict";
// By the codes with which the server closes a session.
const REASONS = {
  1006: "The connection to the server was lost.",
  1009: "More came at once than a session takes.",
  4000: "The server was stopped.",
  4001: "No key came for a long time.",
  4002: "The application failed; the server's terminal says why.",
  4003: "The teacher's page was opened again, and that one leads now.",
};
// The same as long as the tab is open: where a connection breaks, what its pupil has predicted stays.
const newName = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
const tab = (sessionStorage.tab ??= newName());
window.WebSocket = class extends WebSocket {
  constructor(address) {
    const named = new URL(address);
    named.searchParams.set("tab", tab);
    super(named);
    this.addEventListener("close", ({ code }) => {
      document.querySelector(".ended .reason").textContent = REASONS[code] ?? "It was left.";
    });
  }
};
// textual.js connects when the page has loaded, to the address that it finds here.
document.addEventListener("DOMContentLoaded", () => {
  const { body } = document;
  const terminal = document.getElementById("terminal");
  terminal.dataset.sessionWebsocketUrl = new URL("ws", location).href.replace(/^http/, "ws");
  const takeKeys = () => {
    if (!body.classList.contains("-closed")) terminal.querySelector("textarea")?.focus();
  };
  addEventListener("focus", takeKeys);
  new MutationObserver(async () => {
    takeKeys();
    if (!body.classList.contains("-closed")) return;
    body.querySelector(".ended a").focus();
    // Where the last place was taken meanwhile, the server's own page says so.
    if (!body.classList.contains("-loaded") && (await fetch("./")).status === 503) location.reload();
  }).observe(body, { attributeFilter: ["class"] });
});
