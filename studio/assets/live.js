// Keeps a page current with a stream of changes. A hidden tab closes its stream.
import { apply } from "./slots.js";

let address = document.querySelector("[data-live]").dataset.live;
const root = document.documentElement;
let source = null;

function open() {
  if (source) return;
  source = new EventSource(address);
  source.addEventListener("slots", (event) => apply(JSON.parse(event.data)));
  source.addEventListener("open", () => root.classList.remove("lost"));
  source.addEventListener("error", () => {
    root.classList.add("lost");
    // A browser does not try again after a refusal.
    if (source?.readyState === EventSource.CLOSED) {
      close();
      setTimeout(() => document.hidden || open(), 5000);
    }
  });
}

function close() {
  source?.close();
  source = null;
}

// Follows the stream at another address from now on.
export function follow(to) {
  address = to;
  close();
  if (!document.hidden) open();
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", () => document.hidden || open());
if (!document.hidden) open();
