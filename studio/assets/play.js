// The page of a table: sends what a person does, shows what the server sends.
import { BoardInput } from "./board.js";

const play = document.querySelector("[data-play]");
const setup = document.querySelector("[data-setup]");
const said = play.querySelector(".said");
const slot = (name) => play.querySelector(`[data-slot="${name}"]`);

let table = play.dataset.table ?? null;
let source = null;
let flip = new URLSearchParams(location.search).get("side") === "second";
let at = 0;
let offers = [];
let overlay = "";
let part = null;

function say(text) {
  said.textContent = text;
}

async function send(address, body) {
  const reply = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

async function act(command) {
  say("");
  try {
    await send(`/play/tables/${table}`, command);
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

const board = new BoardInput(
  play.querySelector(".board-slot"),
  play.querySelector(".picker"),
  (offer) => act({ do: "play", actions: offer.actions, at }),
  (names) => act({ do: "say", text: names.join(" ") }),
  (name) => say(`${name} is chosen: tap it again to play there.`),
);

// What the server sends.
function show({ slots, offers: fresh, flags }) {
  const redrawn = "board" in slots;
  if (redrawn) board.beforeRedraw();
  for (const [name, html] of Object.entries(slots)) {
    if (name === "overlay") overlay = html;
    else {
      const place = slot(name);
      if (place) replace(place, html);
    }
  }
  const layer = play.querySelector("[data-slot=overlay]");
  if (layer && (redrawn || "overlay" in slots)) layer.innerHTML = overlay;
  at = flags.at;
  play.dataset.at = at;
  if (fresh) {
    offers = fresh;
    part = null;
  }
  board.update(fresh, redrawn);
  choosePart(part);
  play.querySelector("[name=analyse]").checked = flags.analysing;
  const pause = play.querySelector("[data-pause]");
  pause.hidden = !flags.paused && setup.elements.side?.value !== "none";
  pause.textContent = flags.paused ? "Continue" : "Pause";
  pause.dataset.on = flags.paused ? "" : "on";
  const turn = play.querySelector("[data-flip]");
  if (turn && redrawn) turn.hidden = !("turnable" in (board.board?.dataset ?? {}));
  const current = slot("moves").querySelector("[aria-current]");
  if (current && "moves" in slots) {
    const list = slot("moves");
    list.scrollTop = current.offsetTop - list.clientHeight / 2;
  }
}

// Draws a place anew and keeps the focus on the button that had it.
function replace(place, html) {
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  const key = active && ["data-go", "data-action", "data-offer", "data-choose"].find((name) => active.hasAttribute(name));
  const value = key && active.getAttribute(key);
  place.innerHTML = html;
  if (key) place.querySelector(`[${key}="${value}"]`)?.focus();
}

function open() {
  if (source || !table) return;
  source = new EventSource(`/play/tables/${table}/events?flip=${flip}`);
  source.addEventListener("table", (event) => {
    document.documentElement.classList.remove("lost");
    show(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    document.documentElement.classList.add("lost");
    if (source?.readyState === EventSource.CLOSED) say("The connection is closed. Start a new game, or load the page again.");
  });
}

function close() {
  source?.close();
  source = null;
}

function reopen() {
  close();
  open();
}

// The game with the size of its board, as addresses have it.
function chosenGame() {
  const { game, size } = setup.elements;
  return size ? `${game.value}:${size.value}` : game.value;
}

async function begin() {
  const fields = new FormData(setup);
  const game = { game: chosenGame(), visits: Number(fields.get("visits") || 100) };
  for (const name of ["opponent", "side", "start"]) if (fields.get(name)) game[name] = fields.get(name);
  if (fields.get("level")) game.level = Number(fields.get("level"));
  if (fields.get("actions")) game.actions = JSON.parse(fields.get("actions"));
  say("");
  try {
    const opened = await send("/play/tables", game);
    table = opened.table;
    play.querySelector(".open-tree [name=table]").value = table;
    flip = game.side === "second";
    history.replaceState(null, "", `/play?table=${table}${flip ? "&side=second" : ""}`);
    reopen();
  } catch (error) {
    say(error.message);
  }
}

// Parts of a tree: one is chosen, its moves are listed.
function choosePart(number) {
  part = number;
  for (const button of play.querySelectorAll("[data-choose]")) {
    const moves = offers.filter((offer) => offer.part === Number(button.dataset.choose)).length;
    button.disabled = !moves;
    button.setAttribute("aria-pressed", String(Number(button.dataset.choose) === number));
  }
  for (const button of play.querySelectorAll("[data-offer][data-part]")) {
    button.hidden = number !== null && Number(button.dataset.part) !== number;
  }
}

// What a person does.
setup.addEventListener("submit", (event) => {
  event.preventDefault();
  begin().then(() => (setup.elements.actions.value = ""));
});
setup.elements.game.addEventListener("change", () => {
  location.assign(`/play?game=${encodeURIComponent(setup.elements.game.value)}`);
});
setup.elements.size?.addEventListener("change", () => location.assign(`/play?game=${chosenGame()}`));

function searches() {
  const chosen = setup.elements.opponent.selectedOptions[0];
  setup.elements.visits.disabled = !(chosen && "searches" in chosen.dataset);
}
setup.elements.opponent.addEventListener("change", searches);

play.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { dataset } = button;
  if (dataset.do) act({ do: dataset.do });
  else if ("go" in dataset) act({ do: "go", to: Number(dataset.go) });
  else if ("pause" in dataset) act({ do: "pause", on: dataset.on === "on" });
  else if ("choose" in dataset) choosePart(Number(dataset.choose) === part ? null : Number(dataset.choose));
  else if ("offer" in dataset) act({ do: "play", actions: offers[Number(dataset.offer)].actions, at });
  else if ("action" in dataset) act({ do: "play", actions: [Number(dataset.action)], at });
  else if ("new" in dataset) begin();
  else if ("flip" in dataset) {
    flip = !flip;
    reopen();
  }
});

play.querySelector(".say").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = event.target.elements.text;
  if (field.value.trim() && (await act({ do: "say", text: field.value }))) field.value = "";
});

play.querySelector("[name=analyse]").addEventListener("change", (event) => {
  act({ do: "analyse", on: event.target.checked });
});
for (const radio of play.querySelectorAll("[name=show]")) {
  radio.addEventListener("change", () => (play.dataset.show = radio.value));
}
play.dataset.show = "visits";

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, [data-cell], summary") || event.ctrlKey || event.metaKey || event.altKey) return;
  const turns = [...play.querySelectorAll("[data-go]")];
  const now = turns.findIndex((turn) => Number(turn.dataset.go) >= at);
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1 }[event.key];
  if (to !== undefined && turns[to]) {
    event.preventDefault();
    act({ do: "go", to: Number(turns[to].dataset.go) });
  }
});

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
searches();
if (table) open();
else begin();
