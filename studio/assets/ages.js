// Ages: the server gives the moment, the page the distance from now.
const units = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

function age(seconds) {
  const [size, unit] = units.find(([size]) => seconds >= 2 * size) ?? [1, "s"];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit} ago`;
}

export function tick() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    const text = age((Date.now() - Number(time.dataset.at)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

tick();
setInterval(tick, 1000);
