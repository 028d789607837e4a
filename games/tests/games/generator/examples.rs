//! Examples of tasks: problems with them, rows that hold them, starts in JSON, canonical colours.

use games::{
    Game, Symmetry,
    generator::{
        Clan, ClanPosition, Encoding, Example, Examples, ExamplesError, GeneratorGame, Grid, Move, Problem,
        Rules, task::Task,
    },
};
use proptest::prelude::*;

use super::play::{
    Colors, SAME_COLORS, any_position, canonical_row, draw_colors, drawer, examples_of, grid, legal,
    recolored, recolored_clan, transformations, written,
};

fn tasks() -> Rules {
    Rules {
        tasks: 100,
        ..Rules::default()
    }
}

fn row(state: &GeneratorGame, symmetry: Symmetry) -> Vec<u32> {
    let mut row = Vec::new();
    state.write_row(Encoding::Examples, symmetry, &mut row);
    row
}

#[test]
fn sets_of_examples_know_no_order_and_have_limits() {
    let [one, two, three, four] = [1, 2, 3, 4].map(|color| grid(&[&[color]]));
    let examples = examples_of([one, two, three]);
    let set = Examples::new(examples.clone()).unwrap();
    let reversed: Vec<Example> = examples.iter().rev().copied().collect();
    assert_eq!(Examples::new(reversed).unwrap(), set);
    assert_eq!(
        Examples::new([examples.clone(), examples.clone()].concat()).unwrap(),
        set
    );
    let fourth = Example {
        input: four,
        output: one,
    };
    assert_eq!(
        Examples::new([examples, vec![fourth]].concat()),
        Err(ExamplesError::Number(4))
    );
    let empty = Example {
        input: Grid::ABSENT,
        output: one,
    };
    assert_eq!(Examples::new(vec![empty]), Err(ExamplesError::Absent));
    let free = GeneratorGame::posed(&Rules::default(), Problem::Draw(one));
    assert_eq!(free.with_examples(set).unwrap_err(), ExamplesError::NoPair);
}

#[test]
fn the_order_of_the_examples_in_json_does_not_matter_and_errors_name_the_field() {
    let start = |examples: &str| {
        let text = format!(r#"{{"target":[[1]],"second_target":[[2]],"examples":{examples}}}"#);
        GeneratorGame::start(&Rules::default(), Some(&text))
    };
    let (one, other) = (
        r#"{"input":[[3]],"output":[[4]]}"#,
        r#"{"input":[[3,3]],"output":[[4,4]]}"#,
    );
    let state = start(&format!("[{one},{other}]")).unwrap();
    let turned = start(&format!("[{other},{one}]")).unwrap();
    assert_eq!(state, turned);
    assert_eq!(row(&state, Symmetry::IDENTITY), row(&turned, Symmetry::IDENTITY));
    assert_eq!(canonical_row(&state), canonical_row(&turned));
    assert_ne!(state, start("[]").unwrap());
    assert_ne!(
        canonical_row(&state),
        canonical_row(&start(&format!("[{one}]")).unwrap())
    );
    let again = GeneratorGame::start(&Rules::default(), Some(&state.position())).unwrap();
    assert_eq!(again, state);
    for (examples, words) in [
        (r#"[{"input":[[1]]}]"#, "missing field `output`"),
        (r#"[{"input":[[1]],"output":[[11]]}]"#, "cell (0, 0) is 11"),
        (r#"[{"input":[[1]],"output":[[1]],"number":1}]"#, "unknown field"),
        (
            &format!(
                "[{one},{other},{},{}]",
                other.replace('4', "5"),
                one.replace('4', "6")
            ),
            "4 examples",
        ),
    ] {
        let error = start(examples).unwrap_err().to_string();
        assert!(error.contains(words), "{examples}: {error}");
    }
    let text = format!(r#"{{"target":[[1]],"examples":[{one}]}}"#);
    let error = GeneratorGame::start(&Rules::default(), Some(&text)).unwrap_err();
    assert!(error.to_string().contains("`examples`: only a pair"), "{error}");
}

#[test]
fn examples_judge_nothing_and_stay_until_the_end() {
    let start = Clan::start().render();
    let narrow = Clan::start().after(1, Move(20)).unwrap().render();
    let examples = Examples::new(vec![Example {
        input: grid(&[&[7]]),
        output: grid(&[&[8]]),
    }])
    .unwrap();
    let pair = GeneratorGame::posed(&Rules::default(), Problem::Pair(start, narrow));
    let with = pair.clone().with_examples(examples.clone()).unwrap();
    assert_ne!(with, pair);
    let (mut pair, mut with) = (pair, with);
    let solution = [(0, Move::MARK_STEP), (1, Move(20)), (0, Move::MARK_COMPLETE)];
    for (imp, made) in solution {
        assert_eq!(legal(&with), legal(&pair));
        assert_eq!(with.least_actions_left(), pair.least_actions_left());
        for state in [&mut with, &mut pair] {
            state.play(GeneratorGame::action(imp, made)).unwrap();
        }
        assert_eq!((with.end(), with.examples()), (pair.end(), &examples));
    }
    assert_eq!(with.ending(), Some("solved"));
    // A failed move leads to the one position "Oops", which has no examples.
    let oops = |mut state: GeneratorGame| {
        state.play(GeneratorGame::action(0, Move::MARK_COMPLETE)).unwrap();
        row(&state, Symmetry::IDENTITY)
    };
    let lost = GeneratorGame::posed(&Rules::default(), Problem::Pair(narrow, start));
    assert_eq!(oops(lost.clone().with_examples(examples).unwrap()), oops(lost));
}

/// Rules that draw tasks need rows that hold examples.
#[test]
fn tasks_need_the_representation_with_examples() {
    for (rules, encoding, is_possible) in [
        (Rules::default(), Encoding::Plain, true),
        (Rules::default(), Encoding::Examples, true),
        (tasks(), Encoding::Examples, true),
        (tasks(), Encoding::Plain, false),
    ] {
        assert_eq!(
            GeneratorGame::check(&rules, encoding).is_ok(),
            is_possible,
            "{rules:?}"
        );
    }
    for options in [0, 1] {
        assert_eq!(
            GeneratorGame::encoding(&Default::default(), options)
                .unwrap()
                .options(),
            options
        );
        let layout = GeneratorGame::layout(GeneratorGame::encoding(&Default::default(), options).unwrap());
        layout.check().unwrap();
        assert_eq!(layout.options, options);
        // Models of earlier builds have no such field.
        let json = serde_json::to_value(&layout).unwrap();
        assert_eq!(json["clan"].get("examples").is_some(), options == 1, "{json}");
    }
    assert!(GeneratorGame::encoding(&Default::default(), 2).is_err());
    let too_many = Rules {
        pairs: 60,
        tasks: 41,
        ..Rules::default()
    };
    assert!(GeneratorGame::start(&too_many, None).is_err());
}

#[test]
fn the_other_pairs_of_a_task_are_the_examples_of_each() {
    let pair = |color: u8| format!(r#"{{"input":[[{color}]],"output":[[{color},{color}]]}}"#);
    let text = format!(
        r#"{{"train":[{},{},{}],"test":[{},{}]}}"#,
        pair(1),
        pair(2),
        pair(3),
        pair(4),
        pair(9)
    );
    let task = Task::read(&text).unwrap();
    let colors = |own| {
        let examples = task.examples_of(own).unwrap();
        let colors = examples.as_slice().iter().map(|example| example.input.cells()[0]);
        colors.collect::<Vec<u8>>()
    };
    assert_eq!(colors(&task.train[1]), [1, 3, 4]);
    assert_eq!(colors(&task.test[0]), [1, 2, 3]);
    assert_eq!(colors(&task.test[1]), [1, 2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_read_as_they_were_written(position in any_position()) {
        let row = written(&position);
        let count = position.examples.len();
        prop_assert_eq!(row.len(), 34 + position.clan.len() + 32 * count);
        prop_assert_eq!(&ClanPosition::read(&row).unwrap(), &position);
        let with = GeneratorGame::layout(Encoding::Examples);
        let plain = GeneratorGame::layout(Encoding::Plain);
        prop_assert_eq!(with.validate(&row), Ok(()));
        prop_assert!(with.row_lengths().contains(&row.len()));
        prop_assert_eq!(plain.validate(&row).is_ok(), count == 0);
        prop_assert_eq!(plain.codec().expander().push(&row).is_ok(), count == 0);
        if matches!(position.problem, Problem::Draw(_)) {
            let mut marked = row.clone();
            marked[1] |= 1;
            prop_assert!(with.validate(&marked).unwrap_err().to_string().contains("no step"));
        }
        // Without examples the row is what comes before them, without their number in the flags.
        let mut old = row.clone();
        old.truncate(34 + position.clan.len());
        old[1] &= 7;
        let bare = ClanPosition { examples: Examples::NONE, ..position.clone() };
        prop_assert_eq!(written(&bare), old);
        // Rows that follow each other are told apart.
        let rows = [row.clone(), written(&bare), row.clone()].concat();
        let split: Vec<&[u32]> = with.split(&rows).collect();
        prop_assert_eq!(split.len(), 3);
        prop_assert_eq!(split[0], split[2]);
    }

    /// One bit of a row is changed, its end is missing, or its examples are in another order.
    #[test]
    fn a_damaged_row_is_refused_or_another_row(position in any_position(), at: prop::sample::Index, bit in 0u32..32, cut: prop::sample::Index) {
        let mut row = written(&position);
        if position.examples.len() > 1 {
            let mut turned = row.clone();
            let first = 34 + position.clan.len();
            turned[first..].rotate_left(32);
            let error = ClanPosition::read(&turned).unwrap_err();
            prop_assert!(error.to_string().contains("ascend"), "{error}");
            turned.copy_within(first..first + 32, first + 32);
            prop_assert!(ClanPosition::read(&turned).is_err());
        }
        let layout = GeneratorGame::layout(Encoding::Examples);
        let place = at.index(row.len());
        row[place] ^= 1 << bit;
        if let Ok(other) = ClanPosition::read(&row) {
            prop_assert_eq!(layout.validate(&row), Ok(()));
            prop_assert_eq!(written(&other), row.clone());
        }
        row.truncate(cut.index(row.len()));
        prop_assert!(layout.split(&row).all(|row| row.len() <= *layout.row_lengths().end()));
        prop_assert!(ClanPosition::read(&row).is_err());
    }

    /// A permutation of the colours for training maps the examples too, and keeps them in order.
    #[test]
    fn recoloured_rows_hold_the_recoloured_examples(position in any_position(), number in 1u8..255) {
        let mut turned = written(&position);
        let symmetries = GeneratorGame::row_symmetries(Encoding::Examples);
        symmetries.turn_row(Symmetry(number), &mut turned);
        let turned = ClanPosition::read(&turned).unwrap();
        // The permutation follows from the policy entries of a colour.
        let color = |color: u8| (symmetries.turn_action(Symmetry(number), 25 + u32::from(color)) - 25) as u8;
        let colors: Colors = std::array::from_fn(|own| color(own as u8));
        let examples = position.examples.as_slice().iter().map(|example| Example {
            input: recolored(&colors, &example.input),
            output: recolored(&colors, &example.output),
        });
        prop_assert_eq!(turned.examples, Examples::new(examples.collect()).unwrap());
        let target = position.problem.target().map(|grid| recolored(&colors, grid));
        prop_assert_eq!(turned.problem.target(), target.as_ref());
    }
}

/// Returns grids of three cells with few colours, so that examples often differ by a permutation of colours.
fn small_grids() -> impl Strategy<Value = Vec<Grid>> {
    let small = prop::collection::vec(1u8..6, 3).prop_map(|cells| grid(&[&cells]));
    prop::collection::vec(small, 8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn all_permutations_of_a_position_with_examples_have_one_canonical_row(grids in small_grids(), colors in prop::sample::subsequence(vec![2u8, 3, 4, 5, 6], 0..3), seed: u64) {
        let mut clan = Clan::start();
        for color in colors {
            // A dot of this colour: its colour is imp 8 at the time when it is the first shape.
            clan = clan.after(0, Move(2)).unwrap();
            clan = clan.after(clan.len() - 1, Move(25 + color)).unwrap_or(clan);
        }
        let state = |colors: &Colors| {
            let pairs = grids[2..].chunks(2).map(|pair| Example {
                input: recolored(colors, &pair[0]),
                output: recolored(colors, &pair[1]),
            });
            let problem = Problem::Pair(recolored(colors, &grids[0]), recolored(colors, &grids[1]));
            let state = GeneratorGame::from_clan(&Rules::default(), problem, recolored_clan(colors, &clan));
            state.with_examples(Examples::new(pairs.collect()).unwrap()).unwrap()
        };
        let expected = canonical_row(&state(&SAME_COLORS));
        GeneratorGame::layout(Encoding::Examples).validate(&expected).unwrap();
        let mut draw = drawer(seed);
        for _ in 0..12 {
            let changed = state(&draw_colors(&mut draw));
            prop_assert_eq!(&canonical_row(&changed), &expected);
            // The representative is its own representative, and a move leads to the same position as its entry does there.
            let read = ClanPosition::read(&expected).unwrap();
            let representative = GeneratorGame::from_clan(&Rules::default(), read.problem, read.clan);
            let representative = representative.with_examples(read.examples).unwrap();
            prop_assert_eq!(&canonical_row(&representative), &expected);
            let legal = legal(&changed);
            let symmetry = changed.canonical(&legal, &mut Vec::new()).unwrap();
            for (imp, made, _) in transformations(changed.clan()).into_iter().step_by(7) {
                let action = GeneratorGame::action(imp, made);
                let (mut after, mut there) = (changed.clone(), representative.clone());
                if after.play(action).is_err() {
                    continue;
                }
                there.play(changed.policy_index(Encoding::Examples, symmetry, action)).unwrap();
                prop_assert_eq!(canonical_row(&after), canonical_row(&there));
            }
        }
    }
}
