// Parts of a page that change, by their names. The server makes the HTML of a part, for the page and for its changes alike.
import { tick } from "./ages.js";

export function apply(changes) {
  for (const [name, html] of Object.entries(changes)) {
    for (const slot of document.querySelectorAll(`[data-slot="${name}"]`)) {
      // The focus stays on the control that had it, though its element is a new one.
      const id = slot.contains(document.activeElement) && document.activeElement.id;
      slot.innerHTML = html;
      if (id) document.getElementById(id)?.focus({ preventScroll: true });
    }
  }
  tick();
  document.dispatchEvent(new Event("slots"));
}
