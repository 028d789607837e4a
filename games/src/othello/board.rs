//! Legal placements and turned discs by parallel-prefix floods, which treat all squares of a direction at once, in four
//! steps.

/// All files but the two outermost. A flood along ranks or diagonals that entered one of these would wrap around.
const INNER_FILES: u64 = 0x7e7e_7e7e_7e7e_7e7e;

/// Returns the four axes, each with the shift of one step, and the discs through which a flood may run.
const fn axes(other: u64) -> [(u32, u64); 4] {
    let inner = other & INNER_FILES;
    [(1, inner), (8, other), (7, inner), (9, inner)]
}

/// Returns the runs of up to six discs of `through` that start next to `from`, towards higher squares.
const fn flood_up(from: u64, through: u64, step: u32) -> u64 {
    let mut run = through & from << step;
    run |= through & run << step;
    let pairs = through & through << step;
    run |= pairs & run << (2 * step);
    run | pairs & run << (2 * step)
}

/// Returns the runs of up to six discs of `through` that start next to `from`, towards lower squares.
const fn flood_down(from: u64, through: u64, step: u32) -> u64 {
    let mut run = through & from >> step;
    run |= through & run >> step;
    let pairs = through & through >> step;
    run |= pairs & run >> (2 * step);
    run | pairs & run >> (2 * step)
}

/// Returns the empty squares on which a disc of `own` would turn over some of `other`.
pub(super) fn placements(own: u64, other: u64) -> u64 {
    let mut ends = 0;
    for (step, through) in axes(other) {
        ends |= flood_up(own, through, step) << step;
        ends |= flood_down(own, through, step) >> step;
    }
    ends & !(own | other)
}

/// Returns the discs of `other` that some placement of `own` turns over: those between a disc of `own` and an empty square.
pub(super) fn turnable(own: u64, other: u64) -> u64 {
    let empty = !(own | other);
    let mut turnable = 0;
    for (step, through) in axes(other) {
        turnable |= flood_up(own, through, step) & flood_down(empty, through, step);
        turnable |= flood_down(own, through, step) & flood_up(empty, through, step);
    }
    turnable
}

/// Returns the discs of `other` that are turned over when `own` places one on `placed`.
pub(super) fn turned(placed: u64, own: u64, other: u64) -> u64 {
    // No branches: they would be mispredicted, since a direction turns discs about as often as not.
    let held = |run: u64, end: u64| run & u64::from(end & own != 0).wrapping_neg();
    let mut turned = 0;
    for (step, through) in axes(other) {
        let up = flood_up(placed, through, step);
        let down = flood_down(placed, through, step);
        turned |= held(up, up << step) | held(down, down >> step);
    }
    turned
}
