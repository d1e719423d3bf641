//! State of the histogram pane: the cursor on the heat map or on a histogram, what is selected, and the cells of the
//! heat map, which are counted when executions, groups, size or axis change and not for each frame.

use crate::compare::heat_map::{HeatBox, HeatMap, time_axis};
use crate::model::Model;
use crate::model::metric::Metric;
use crate::tui::frame::HeatCells;
use crate::tui::groups::{BinSelection, BoxSelection, GroupSide, Selections};
use crate::tui::heat_cells::{CountedMap, HeatQuestion};
use crate::tui::job::Busy;

/// State of the histogram pane.
#[derive(Clone, Debug, Default)]
pub struct HistogramPane {
    /// The heat map, its first row.
    pub heat: HeatPane,
    /// The cursor is below the heat map.
    pub below_heat: bool,
    /// The metric under the cursor.
    pub row: usize,
    /// The first metric shown.
    pub offset: usize,
    /// The bin under the cursor; always the first of a column on the screen.
    pub bin: usize,
    /// The selected range.
    pub selection: Option<BinSelection>,
    /// The last change of the groups came from a selection: moving on amends it.
    pub dragging: bool,
}

impl HistogramPane {
    /// All that is selected.
    pub fn selections(&self) -> Selections {
        Selections { bins: self.selection.clone(), cells: self.heat.selection.clone() }
    }

    /// Select what was selected before.
    pub fn select_again(&mut self, selections: Selections) {
        self.selection = selections.bins;
        self.heat.selection = selections.cells;
    }

    /// True where the cursor is on the heat map, which has these cells of the screen.
    pub fn is_on_heat(&self, cells: HeatCells) -> bool {
        !self.below_heat && cells.rows > 0
    }

    /// What is selected at the cursor has become the filters of a group.
    pub fn attach(&mut self, selections: Selections, side: GroupSide, cells: HeatCells) {
        self.select_again(selections);
        self.dragging = true;
        if !self.is_on_heat(cells) {
            if let Some(bins) = &mut self.selection {
                bins.attached = Some(side);
            }
        } else if let Some(boxed) = &mut self.heat.selection {
            boxed.attached = Some(side);
        }
    }

    /// What is selected moves no filters any more.
    pub fn detach(&mut self) {
        if let Some(bins) = &mut self.selection {
            bins.attached = None;
        }
        if let Some(boxed) = &mut self.heat.selection {
            boxed.attached = None;
        }
    }

    /// Put the cursor on a metric.
    pub fn go_to_row(&mut self, row: usize) {
        self.row = row;
        self.below_heat = true;
    }
}

/// State of the heat map.
#[derive(Clone, Debug, Default)]
pub struct HeatPane {
    /// What the columns are of; `None`: the time.
    pub across: Option<Metric>,
    /// The cells of the latest question that was answered.
    pub counted: Option<CountedMap>,
    /// The latest question.
    pub asked: Option<HeatQuestion>,
    /// The job that counts.
    pub busy: Option<Busy>,
    /// Why the latest question has no answer.
    pub failure: Option<String>,
    /// Column and row of the cursor.
    pub cursor: (usize, usize),
    /// The selected box.
    pub selection: Option<BoxSelection>,
    /// Arrows move the corner of the box.
    pub stretches: bool,
}

impl HeatPane {
    /// What the columns are of.
    pub fn across(&self, model: &Model) -> Metric {
        self.across.clone().unwrap_or_else(|| time_axis(model))
    }

    pub fn map(&self) -> Option<&HeatMap> {
        self.counted.as_ref().map(|counted| &*counted.map)
    }

    /// The selected box in cells of the map.
    pub fn boxed(&self) -> Option<HeatBox> {
        let (map, selection) = (self.map()?, self.selection.as_ref()?);
        (selection.across == map.across).then(|| map.box_of(&selection.corners))
    }

    /// The selected box, else the cell under the cursor.
    pub fn here(&self) -> HeatBox {
        let (column, row) = self.cursor;
        self.boxed().unwrap_or(HeatBox { columns: column..column + 1, rows: row..row + 1 })
    }
}

/// True where executions have a heat map: samples of a profile have no durations, and one execution is no picture.
pub fn has_heat(model: &Model) -> bool {
    model.profile.is_none() && model.executions.len() > 1
}
