//! A small layout for the unit tests.

use games::{ConstantPlane, PlaneStack, RowForm, RowLayout};

/// Rows of three values: two indices into planes 0 and 2, one constant up to 100. Five actions.
pub(crate) fn layout() -> RowLayout {
    RowLayout {
        game: "small".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: 2,
            planes: 4,
            sparse: vec![0, 2],
            constants: vec![ConstantPlane {
                name: "counter".into(),
                plane: 1,
                divisor: 100,
                max: 100,
            }],
            ones: vec![3],
        }),
        actions: 5,
        mirrored_actions: false,
        policy_head: games::PolicyHead::Dense,
    }
}
