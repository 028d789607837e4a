// Clicks, drags and keys on a board. The server drew it and gave the offers: which cells to click for which actions.
// `played(offer)` is called for a chosen offer, `refused(names)` for cells that no offer has, `aimed(name)` for a cell that a
// second tap plays.
const DRAG = 6;
// Width in pixels below which a finger may miss a cell. A first tap chooses such a cell, and a second one plays it.
const SMALL = 24;

export class BoardInput {
  constructor(area, picker, played, refused, aimed) {
    this.area = area;
    this.picker = picker;
    this.played = played;
    this.refused = refused;
    this.aimed = aimed;
    this.offers = [];
    this.path = [];
    this.aim = null;
    this.drag = null;
    this.focused = null;
    area.addEventListener("pointerdown", (event) => this.down(event));
    area.addEventListener("pointermove", (event) => this.move(event));
    area.addEventListener("pointerup", (event) => this.up(event));
    area.addEventListener("pointercancel", () => this.reset());
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("focusin", (event) => this.follow(event));
    picker.addEventListener("keydown", (event) => event.key === "Escape" && this.reset());
  }

  get board() {
    return this.area.querySelector("[data-board]");
  }

  cell(number) {
    return this.area.querySelector(`[data-board] [data-cell="${number}"]`);
  }

  name(number) {
    return this.cell(number)?.getAttribute("aria-label")?.split(",")[0] ?? "";
  }

  // A new position: what was begun on the old one is over.
  update(offers, redrawn) {
    if (offers) {
      this.offers = offers;
      this.path = [];
      this.aim = null;
      this.endDrag();
      this.closePicker();
    }
    if (redrawn) {
      const had = this.hadFocus;
      this.hadFocus = false;
      const target = this.cell(this.focused ?? 0) ?? this.area.querySelector("[data-cell]");
      target?.setAttribute("tabindex", "0");
      if (had) target?.focus();
    }
    this.mark();
    if (offers) this.pickIfForced();
  }

  // Called before the board is drawn anew.
  beforeRedraw() {
    this.hadFocus = this.area.contains(document.activeElement);
  }

  next(path = this.path) {
    return this.offers.filter(
      (offer) => offer.cells.length > path.length && path.every((cell, at) => offer.cells[at].includes(cell)),
    );
  }

  continues(cell, path = this.path) {
    return this.next(path).filter((offer) => offer.cells[path.length].includes(cell));
  }

  mark() {
    for (const cell of this.area.querySelectorAll(".target, .chosen, .from")) {
      cell.classList.remove("target", "chosen", "from");
    }
    const targets = this.path.length || this.board?.querySelector("[data-hand]") ? "target" : "from";
    for (const offer of this.next()) this.cell(offer.cells[this.path.length][0])?.classList.add(targets);
    for (const cell of this.path) this.cell(cell)?.classList.add("chosen");
    this.markAim();
  }

  // Lines across the board, because the finger hides the cell.
  markAim() {
    this.board?.querySelector(".aim")?.remove();
    const cell = this.aim === null ? null : this.cell(this.aim);
    if (!cell) return;
    cell.classList.add("chosen");
    const { e, f } = cell.transform.baseVal.consolidate().matrix;
    const last = this.board.querySelectorAll("[data-cell]").length - 1;
    const corners = [0, last].map((corner) => this.cell(corner).transform.baseVal.consolidate().matrix);
    const [left, right] = corners.map((corner) => corner.e).sort((one, other) => one - other);
    const bottom = Math.max(...corners.map((corner) => corner.f));
    const lines = document.createElementNS("http://www.w3.org/2000/svg", "path");
    lines.setAttribute("class", "aim");
    lines.setAttribute("d", `M${left} ${f + 50}H${right + 100}M${e + 50} 0V${bottom + 100}`);
    this.board.append(lines);
  }

  aimAt(cell) {
    if (cell === null || cell === this.aim) return;
    this.aim = cell;
    this.mark();
    this.aimed(this.name(cell));
  }

  choose(cell) {
    const found = this.continues(cell);
    if (!found.length) {
      const names = [...this.path, cell].map((each) => this.name(each));
      const again = this.path.length && this.continues(cell, []).length;
      const same = this.path.at(-1) === cell;
      const hand = this.board?.querySelector("[data-hand]")?.dataset.hand === String(cell);
      const single = this.offers.length > 0 && this.offers.every((offer) => offer.cells.length < 2);
      const had = this.path.length > 0 || single;
      this.path = [];
      if (again && !same) return this.choose(cell);
      this.mark();
      if (had && !same && !hand) this.refused(names);
      return;
    }
    this.path = [...this.path, cell];
    const complete = found.filter((offer) => offer.cells.length === this.path.length);
    if (complete.length === found.length) this.settle(complete, cell);
    else this.mark();
  }

  settle(complete, cell) {
    if (complete.length === 1) {
      this.path = [];
      this.mark();
      this.played(complete[0]);
    } else this.openPicker(complete, cell);
  }

  // A promotion after the pawn is on its square: nothing else can be played.
  pickIfForced() {
    const [first] = this.offers;
    if (!first?.piece || first.cells.length > 1) return;
    if (this.offers.every((offer) => offer.piece)) this.openPicker(this.offers, first.cells[0]?.[0] ?? 0);
  }

  openPicker(offers, number) {
    this.mark();
    const cell = this.cell(number)?.getBoundingClientRect();
    const buttons = offers.map((offer) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-label", offer.piece?.kind ?? offer.text);
      button.title = offer.piece?.kind ?? offer.text;
      button.innerHTML = `<svg class="scene" viewBox="0 0 100 100" aria-hidden="true"><use></use></svg>`;
      const use = button.querySelector("use");
      use.setAttribute("href", `#piece-${offer.piece?.kind}`);
      use.setAttribute("class", offer.piece?.look ?? "");
      button.addEventListener("click", () => {
        this.closePicker();
        this.path = [];
        this.played(offer);
      });
      return button;
    });
    this.picker.replaceChildren(...buttons);
    this.picker.hidden = false;
    if (cell) {
      const stage = this.picker.parentElement.getBoundingClientRect();
      const wide = this.picker.offsetWidth;
      const left = Math.min(Math.max(0, cell.left + cell.width / 2 - wide / 2 - stage.left), stage.width - wide);
      this.picker.style.left = `${left}px`;
      this.picker.style.top = `${cell.bottom + 4 - stage.top}px`;
    }
    buttons[0].focus();
  }

  closePicker() {
    if (this.picker.hidden) return;
    if (this.picker.contains(document.activeElement)) this.cell(this.focused ?? 0)?.focus();
    this.picker.hidden = true;
    this.picker.replaceChildren();
  }

  reset() {
    this.path = [];
    this.aim = null;
    this.endDrag();
    this.closePicker();
    this.mark();
  }

  // Pointers: mouse, pen and touch alike.
  at(event) {
    const found = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-cell], [data-hand]");
    if (!found || !this.board?.contains(found)) return null;
    return Number(found.dataset.cell ?? found.dataset.hand);
  }

  down(event) {
    if (event.button !== 0 || !this.picker.hidden) return;
    const cell = this.at(event);
    if (cell === null) return;
    event.preventDefault();
    this.area.setPointerCapture(event.pointerId);
    const hand = this.board.querySelector("[data-hand]");
    const lifts = this.continues(cell, []).some((offer) => offer.cells.length > 1);
    const holds = hand?.dataset.hand === String(cell);
    const wasChosen = this.path.length === 1 && this.path[0] === cell;
    const reaches = this.path.length > 0 && this.continues(cell).length > 0;
    const small = this.cell(cell).getBoundingClientRect().width < SMALL;
    const aims = small && event.pointerType === "touch" && this.offers.length > 0 && !lifts && !reaches && !holds;
    const again = cell === this.aim;
    const can = (lifts && !reaches) || holds;
    this.drag = { cell, x: event.clientX, y: event.clientY, can, holds, wasChosen, aims, again, ghost: null };
    if (aims) this.aimAt(cell);
    if (lifts && !reaches && !wasChosen) {
      this.path = [cell];
      this.mark();
    }
    this.focus(cell, false);
  }

  move(event) {
    const { drag } = this;
    if (drag?.aims) {
      const cell = this.at(event);
      if (cell !== this.aim) drag.again = false;
      this.aimAt(cell);
    }
    if (!drag?.can) return;
    if (!drag.ghost && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG) return;
    if (!drag.ghost) {
      const source = drag.holds ? this.board.querySelector("[data-hand]") : this.cell(drag.cell);
      drag.ghost = this.board.querySelector(".moving");
      drag.ghost.replaceChildren(...[...source.querySelectorAll(".piece")].map((piece) => piece.cloneNode(true)));
      drag.source = source;
      source.classList.add("dragged");
      this.area.classList.add("dragging");
      if (!drag.holds) this.path = [drag.cell];
      this.mark();
    }
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.board.getScreenCTM().inverse());
    drag.ghost.setAttribute("transform", `translate(${place.x - 50} ${place.y - 50})`);
  }

  up(event) {
    const { drag } = this;
    if (!drag) return;
    const cell = this.at(event);
    const dragged = Boolean(drag.ghost);
    this.endDrag();
    if (dragged) {
      if (cell === null || cell === drag.cell) this.reset();
      else this.choose(cell);
      return;
    }
    if (cell === null || cell !== drag.cell || (drag.aims && !drag.again)) return;
    // A press on a piece has chosen it already; a second press lets it go.
    if (drag.can && !drag.holds) {
      if (drag.wasChosen) this.reset();
      return;
    }
    this.choose(cell);
  }

  endDrag() {
    if (this.drag?.ghost) this.drag.ghost.replaceChildren();
    this.drag?.source?.classList.remove("dragged");
    this.area.classList.remove("dragging");
    this.drag = null;
  }

  // Keys: one cell is in the order of focus; arrows move to its neighbours as drawn.
  follow(event) {
    const cell = event.target.closest("[data-cell]");
    if (cell) this.focus(Number(cell.dataset.cell), false);
  }

  focus(number, really = true) {
    const cell = this.cell(number);
    if (!cell || !this.board?.contains(cell)) return;
    for (const other of this.area.querySelectorAll('[data-cell][tabindex="0"]')) other.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
    this.focused = number;
    if (really) cell.focus();
  }

  key(event) {
    const cell = event.target.closest("[data-cell]");
    if (!cell) return;
    const number = Number(cell.dataset.cell);
    const columns = Number(this.board.dataset.columns);
    const rows = this.board.querySelectorAll("[data-cell]").length / columns;
    const turned = "turned" in this.board.dataset ? -1 : 1;
    const [column, row] = [number % columns, Math.floor(number / columns)];
    const to = (x, y) => {
      if (x >= 0 && x < columns && y >= 0 && y < rows) this.focus(y * columns + x);
    };
    const keys = {
      ArrowLeft: () => to(column - turned, row),
      ArrowRight: () => to(column + turned, row),
      ArrowUp: () => to(column, row - turned),
      ArrowDown: () => to(column, row + turned),
      Home: () => to(turned > 0 ? 0 : columns - 1, row),
      End: () => to(turned > 0 ? columns - 1 : 0, row),
      Enter: () => this.choose(number),
      " ": () => this.choose(number),
      Escape: () => this.reset(),
    };
    const done = keys[event.key];
    if (!done || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.focused = number;
    done();
  }
}
