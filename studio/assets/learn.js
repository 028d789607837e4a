// The slider over checkpoints. The list of links is the truth: the slider moves through it.
import { follow } from "./live.js";

const learn = document.querySelector("[data-learn]");
const slider = learn.querySelector("input[type=range]");
const links = () => [...learn.querySelectorAll(".all a[data-version]")];

function sync() {
  const all = links();
  const current = all.findIndex((link) => link.hasAttribute("aria-current"));
  slider.max = Math.max(0, all.length - 1);
  slider.disabled = all.length < 2;
  if (current >= 0) {
    slider.value = current;
    slider.setAttribute("aria-valuetext", all[current].textContent);
  }
}

function choose(version) {
  history.replaceState(null, "", `/learn?at=${version}`);
  follow(`/learn/live?at=${version}`);
}

slider.addEventListener("input", () => {
  const link = links()[Number(slider.value)];
  if (!link) return;
  slider.setAttribute("aria-valuetext", link.textContent);
  choose(link.dataset.version);
});

learn.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-version]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(link.dataset.version);
});

document.addEventListener("slots", sync);
sync();
