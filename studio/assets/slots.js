// Parts of a page that change, by their names. The server makes the HTML of a part, for the page and for its changes alike.
import { tick } from "./ages.js";

export function apply(changes) {
  for (const [name, html] of Object.entries(changes)) {
    for (const slot of document.querySelectorAll(`[data-slot="${name}"]`)) slot.innerHTML = html;
  }
  tick();
}
