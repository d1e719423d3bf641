//! The sums over the cells are the executions; a box's filters let just its executions in.

use super::*;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::compare::members::members;
use crate::model::metric::Column;
use proptest::prelude::*;

/// Executions as start, duration, and a type by its number; `None`: it has none.
type Made = Vec<(i64, i64, Option<u8>)>;

fn model(made: &Made) -> Model {
    let mut model = Model { origin: Timestamp::new(1_000), ..Model::default() };
    let names: Vec<NameId> = (0..=u8::MAX).map(|n| model.names.intern(&format!("type {n}"))).collect();
    let mut types = Vec::new();
    for (start, duration, kind) in made {
        model.executions.start.push(Timestamp::new(*start));
        model.executions.duration.push(*duration);
        types.push(kind.map_or(ABSENT, |kind| i64::from(names[usize::from(kind)].raw())));
    }
    model.executions.columns.push(Column { metric: Metric::Type, values: types.into() });
    model
}

fn made() -> impl Strategy<Value = Made> {
    let duration = prop_oneof![0..20_i64, 0..5_000_000_000_i64, Just(i64::MAX), Just(-3)];
    let start = prop_oneof![900..1100_i64, 0..1_000_000_000_000_i64];
    prop::collection::vec((start, duration, prop::option::of(0..9_u8)), 1..120)
}

fn size() -> impl Strategy<Value = HeatSize> {
    (1..90_usize, 2..12_usize, 1..20_usize).prop_map(|(times, names, rows)| HeatSize { times, names, rows })
}

/// Every third execution is slow, every fifth fast.
fn groups(made: &Made) -> [Vec<ExecutionId>; 2] {
    [3, 5].map(|n| (0..made.len()).filter(|i| i % n == 0).map(ExecutionId::at).collect())
}

fn map(model: &Model, across: &Metric, groups: &[Vec<ExecutionId>; 2], size: HeatSize) -> HeatMap {
    HeatMap::new(model, across, [&groups[0], &groups[1]], size).unwrap()
}

proptest! {
    #[test]
    fn sums_over_the_cells_are_the_executions(made in made(), size in size()) {
        let (model, groups) = (model(&made), groups(&made));
        for across in [Metric::Start, Metric::Type] {
            let map = map(&model, &across, &groups, size);
            prop_assert!(map.rows() <= size.rows && map.columns.len() <= size.times.max(size.names));
            prop_assert!(map.row_borders.windows(2).all(|pair| pair[0] < pair[1] || pair[1] == i64::MAX));
            let whole = HeatBox { columns: 0..map.columns.len(), rows: 0..map.rows() };
            let [slow, fast] = [0, 1].map(|group: usize| groups[group].len() as u32);
            prop_assert_eq!(map.sum(&whole), HeatCell { all: made.len() as u32, slow, fast });
            // Each execution is where its own look-up says.
            let mut cells = vec![0_u32; map.columns.len() * map.rows()];
            for i in 0..made.len() {
                let (column, row) = map.place(&model, ExecutionId::at(i)).unwrap();
                cells[row * map.columns.len() + column] += 1;
            }
            for (at, count) in cells.into_iter().enumerate() {
                prop_assert_eq!(map.cell(at % map.columns.len(), at / map.columns.len()).all, count);
            }
        }
    }

    #[test]
    fn filters_of_a_part_let_just_its_executions_in(
        made in made(), size in size(), ends in [0..90_usize, 0..90, 0..20, 0..20]
    ) {
        // No filter reaches the largest number but an open one.
        let shorter = |(start, duration, kind): &(i64, i64, Option<u8>)| (*start, (*duration).min(i64::MAX - 1), *kind);
        let made: Made = made.iter().map(shorter).collect();
        let (model, groups) = (model(&made), groups(&made));
        for across in [Metric::Start, Metric::Type] {
            let map = map(&model, &across, &groups, size);
            let part = |a: usize, b: usize, of: usize| {
                let (a, b) = (a % of, b % of);
                a.min(b)..a.max(b) + 1
            };
            let part = HeatBox {
                columns: part(ends[0], ends[1], map.columns.len()),
                rows: part(ends[2], ends[3], map.rows()),
            };
                let Some(filters) = map.filters(&part) else { continue };
            let expected = map.members(&model, &part);
            prop_assert_eq!(expected.len() as u32, map.sum(&part).all);
            let found = members(&model, &filters, &[]).unwrap();
            prop_assert_eq!(found, expected, "{:?}", filters);
        }
    }
}

fn texts(filters: Option<Vec<Filter>>) -> Option<Vec<String>> {
    Some(filters?.iter().map(ToString::to_string).collect())
}

#[test]
fn filters_of_names_are_equal_or_all_but_the_others() {
    let made: Made = vec![(1_000, 5, Some(0)), (1_001, 5, Some(1)), (1_002, 5, Some(1)), (1_003, 5, Some(2))];
    let model = model(&made);
    let none = [Vec::new(), Vec::new()];
    let names = |map: &HeatMap| map.columns.clone();
    let size = HeatSize { times: 10, names: 10, rows: 4 };
    let of_all = map(&model, &Metric::Type, &none, size);
    let name = |n: u8| HeatColumn::Name(format!("type {n}"));
    assert_eq!(names(&of_all), [name(0), name(1), name(2)]);
    let part = |map: &HeatMap, columns| texts(map.filters(&HeatBox { columns, rows: 0..map.rows() }));
    assert_eq!(part(&of_all, 1..2), Some(vec!["type=type 1".to_owned()]));
    assert_eq!(part(&of_all, 0..2), Some(vec!["type!=type 2".to_owned()]));
    assert_eq!(part(&of_all, 0..3), Some(Vec::new()), "all of them need no filter");
    // The most frequent name has a column, the others share one.
    let of_two = map(&model, &Metric::Type, &none, HeatSize { names: 2, ..size });
    assert_eq!(names(&of_two), [name(1), HeatColumn::Others(2)]);
    assert_eq!((of_two.cell(0, 0).all, of_two.cell(1, 0).all), (2, 2));
    assert_eq!(part(&of_two, 1..2), Some(vec!["type!=type 1".to_owned()]), "all that has no column of its own");
    let with_none = self::model(&vec![(1_000, 5, Some(0)), (1_001, 5, Some(1)), (1_002, 5, None)]);
    let with_none = map(&with_none, &Metric::Type, &none, size);
    assert_eq!(with_none.columns[2], HeatColumn::Absent);
    assert_eq!(part(&with_none, 1..3), None, "no filter lets in what has no type");
}

#[test]
fn rows_have_equal_ratios_and_short_borders() {
    let made: Made = (0..50).map(|i| (1_000 + i, 1_234_567 + i * 1_765_432, None)).collect();
    let map = map(&model(&made), &Metric::Start, &groups(&made), HeatSize { times: 8, names: 8, rows: 6 });
    let borders: Vec<String> = map.row_borders.iter().map(|ns| Unit::Ns.exact(*ns)).collect();
    assert_eq!(borders, ["1.234567ms", "2.51ms", "5.11ms", "10.4ms", "21.2ms", "43.1ms", "87.740736ms"]);
}

#[test]
fn axes_are_the_time_and_names_of_several_values() {
    let several = model(&vec![(1_000, 5, Some(0)), (1_001, 5, Some(1))]);
    assert_eq!(axes(&several), [Metric::Start, Metric::Type]);
    assert_eq!(axes(&model(&vec![(1_000, 5, Some(0)), (1_001, 5, Some(0))])), [Metric::Start]);
    assert!(HeatMap::new(&Model::default(), &Metric::Start, [&[], &[]], HeatSize::default()).is_none());
}

#[test]
fn a_box_keeps_its_values_on_a_map_of_another_size() {
    let made: Made = (0..400).map(|i| (1_000 + i * 10, 1_000 + i * i, Some((i % 5) as u8))).collect();
    let (model, none) = (model(&made), [Vec::new(), Vec::new()]);
    let of_size = |across: &Metric, times, names, rows| map(&model, across, &none, HeatSize { times, names, rows });
    let fine = of_size(&Metric::Start, 40, 8, 12);
    let coarse = of_size(&Metric::Start, 10, 8, 4);
    let corners = [fine.corner(8, 3).unwrap(), fine.corner(11, 2).unwrap()];
    assert_eq!(fine.box_of(&corners), HeatBox { columns: 8..12, rows: 2..4 });
    let found = coarse.box_of(&corners);
    assert_eq!(found.columns, 2..3);
    assert!(coarse.row_borders[found.rows.start] <= fine.row_borders[2]);
    assert!(coarse.row_borders[found.rows.end] >= fine.row_borders[4]);
    let by_type = of_size(&Metric::Type, 40, 8, 12);
    let corners = [by_type.corner(1, 0).unwrap(), by_type.corner(3, 1).unwrap()];
    assert_eq!(by_type.box_of(&corners).columns, 1..4);
    assert_eq!(of_size(&Metric::Type, 40, 3, 12).box_of(&corners).columns, 1..3, "names without a column: the others");
}
