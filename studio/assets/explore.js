// The explorer without a jump: links and forms work alone; here their page is fetched, and only its content is put in place.
const main = document.querySelector("#main");

async function follow(address, options) {
  const reply = await fetch(address, options);
  const read = new DOMParser().parseFromString(await reply.text(), "text/html");
  const focused = document.activeElement?.id;
  const scrolled = main.querySelector(".tree .scroll")?.scrollLeft ?? 0;
  main.replaceChildren(...read.querySelector("#main").childNodes);
  const table = main.querySelector(".tree .scroll");
  if (table) table.scrollLeft = scrolled;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  return reply.url;
}

main.addEventListener("click", async (event) => {
  const link = event.target.closest(".explore a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", await follow(link.href));
});

main.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  history.replaceState(null, "", await follow(event.target.action, { method: "POST", body }));
});

addEventListener("popstate", () => follow(location.href));
