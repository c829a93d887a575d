"use strict";
const rounds = [...document.querySelectorAll(".round")];
const byId = (id) => document.getElementById(id);
const last = rounds.length - 1;
let shown = 0, timer = 0;
function show(number) {
  shown = Math.max(0, Math.min(last, number));
  rounds.forEach((round, place) => round.classList.toggle("shown", place === shown));
  byId("place").value = shown;
  byId("back").disabled = shown === 0;
  byId("next").disabled = shown === last;
  byId("said").textContent = rounds[shown].querySelector("h2").textContent;
}
function pause() {
  clearInterval(timer);
  timer = 0;
  byId("play").textContent = "Play";
}
function go(number) { pause(); show(number); }
function toggle() {
  if (timer) { pause(); return; }
  if (shown === last) { show(0); }
  byId("play").textContent = "Pause";
  timer = setInterval(() => { show(shown + 1); if (shown === last) { pause(); } }, 1000);
}
const keys = {
  ArrowLeft: () => go(shown - 1), ArrowRight: () => go(shown + 1),
  Home: () => go(0), End: () => go(last), " ": toggle,
};
document.addEventListener("keydown", (event) => {
  const isPressed = event.key === " " && event.target.tagName === "BUTTON";
  const act = keys[event.key];
  if (!act || isPressed || event.ctrlKey || event.metaKey || event.altKey) { return; }
  event.preventDefault();
  act();
});
byId("back").addEventListener("click", () => go(shown - 1));
byId("next").addEventListener("click", () => go(shown + 1));
byId("play").addEventListener("click", toggle);
byId("place").addEventListener("input", (event) => go(Number(event.target.value)));
byId("place").max = last;
document.querySelector(".player").hidden = false;
document.body.classList.add("played");
show(0);
