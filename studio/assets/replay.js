// Steps through a game without loading the page again: arrow keys, the moves, the graph of the value.
import { apply } from "./slots.js";

const replay = document.querySelector("[data-replay]");
const last = Number(replay.dataset.plies);
let at = Number(replay.dataset.at);
let wanted = at;
let asking = false;

async function show(ply) {
  wanted = Math.min(Math.max(ply, 0), last);
  if (asking) return;
  asking = true;
  try {
    while (wanted !== at) {
      const next = wanted;
      const reply = await fetch(`/games/${replay.dataset.replay}/at/${next}`);
      if (!reply.ok) {
        location.assign(`?ply=${next}`);
        return;
      }
      // The focus stays on the control that was used, though its element is a new one.
      const focused = document.activeElement?.closest("[data-slot]")?.dataset.slot;
      const label = document.activeElement?.getAttribute("aria-label");
      const scrolled = document.querySelector("ol.moves")?.scrollTop ?? 0;
      apply(await reply.json());
      at = next;
      const moves = document.querySelector("ol.moves");
      if (moves) {
        moves.scrollTop = scrolled;
        const current = moves.querySelector("[aria-current]");
        if (current) keepInView(moves, current);
        if (focused === "moves") (current ?? moves).focus({ preventScroll: true });
      }
      if (focused === "steps") document.querySelector(`.steps [aria-label="${label}"]`)?.focus();
      history.replaceState(null, "", `?ply=${at}`);
    }
  } finally {
    asking = false;
  }
}

function keepInView(list, item) {
  const top = item.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  const bottom = top + item.offsetHeight;
  if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

const keys = {
  ArrowLeft: () => wanted - 1,
  ArrowRight: () => wanted + 1,
  ArrowUp: () => wanted - 1,
  ArrowDown: () => wanted + 1,
  Home: () => 0,
  End: () => last,
};

document.addEventListener("keydown", (event) => {
  const target = keys[event.key];
  const isTyping = event.target.closest("input, select, textarea");
  if (!target || isTyping || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(target());
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-ply]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    show(Number(link.dataset.ply));
    return;
  }
  const plot = event.target.closest(".value-card svg[data-low]");
  if (plot) {
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const { low, high } = plot.dataset;
    show(Math.round(Number(low) + share * (Number(high) - Number(low))));
  }
});

const current = document.querySelector("ol.moves [aria-current]");
if (current) keepInView(document.querySelector("ol.moves"), current);
