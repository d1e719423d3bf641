//! Times of day in filters: `start=09:45:56.439`, `start in 09:45..09:46`, on the date of the recording.
//!
//! In: filters as typed, and a model whose clock counts from 1970. Out: the same filters with times since the recording
//! began, which select the same on every screen. Times are in UTC, as every screen and report shows them. A time means
//! as much as was typed of it: `=09:45:56` the second, `=09:45` the minute. Of a recording over midnight the day is the
//! one on which the time is inside of it, else the nearest to it. Cost: O(1) for each filter.

use super::filter::{Filter, Operand, Test};
use super::select_error::SelectError;
use super::time_of_day::TimeOfDay;
use crate::base::figure;
use crate::base::op::Op;
use crate::model::Model;

/// The filters with times since the recording began in place of times of day.
pub(super) fn resolved(model: &Model, filters: &[Filter]) -> Result<Vec<Filter>, SelectError> {
    filters.iter().map(|filter| one(model, filter)).collect()
}

fn one(model: &Model, filter: &Filter) -> Result<Filter, SelectError> {
    let is_time = |operand: &Operand| matches!(operand, Operand::TimeOfDay(_));
    let has_time = match &filter.test {
        Test::Compare(_, value) => is_time(value),
        Test::In(from, to) => is_time(from) || is_time(to),
        Test::AnyOf(_) => false,
    };
    if !has_time {
        return Ok(filter.clone());
    }
    if figure::time_of_day(model.origin.ns()).is_none() {
        return Err(SelectError::NoTimeOfDay { filter: filter.to_string() });
    }
    let first = model.executions.start.get(0).unwrap_or(model.origin);
    let last = model.executions.spans().map(|span| span.end).max().unwrap_or(first);
    let since = |time: &TimeOfDay| time.since(model.origin, (first, last));
    let number = |operand: &Operand| match operand {
        Operand::TimeOfDay(time) => Operand::Number(since(time)),
        other => other.clone(),
    };
    let test = match &filter.test {
        Test::In(from, to) => Test::In(number(from), number(to)),
        Test::Compare(op, Operand::TimeOfDay(time)) => {
            let (begin, end) = (since(time), since(time) + time.precision);
            match op {
                Op::Equal => Test::In(Operand::Number(begin), Operand::Number(end)),
                Op::AtMost => Test::Compare(Op::Less, Operand::Number(end)),
                Op::More => Test::Compare(Op::AtLeast, Operand::Number(end)),
                Op::Less | Op::AtLeast | Op::NotEqual => Test::Compare(*op, Operand::Number(begin)),
            }
        }
        Test::Compare(..) | Test::AnyOf(_) => filter.test.clone(),
    };
    Ok(Filter { metric: filter.metric.clone(), test })
}

#[cfg(test)]
mod tests {
    use super::super::time_of_day::SECOND;
    use super::*;
    use crate::base::time::{Ns, Timestamp};

    /// Executions of a second each, from a moment of 2023-11-14 on.
    fn model(hour: Ns, minute: Ns, seconds: Ns) -> Model {
        let origin = Timestamp::new(1_699_920_000 * SECOND + (hour * 60 + minute) * 60 * SECOND);
        let mut model = Model { origin, ..Model::default() };
        for second in 0..seconds {
            model.executions.start.push(model.origin + second * SECOND);
            model.executions.duration.push(SECOND);
        }
        model
    }

    fn meant(model: &Model, text: &str) -> String {
        let filter: Filter = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(filter.to_string(), text);
        resolved(model, &[filter]).unwrap()[0].to_string()
    }

    #[test]
    fn times_of_day_are_those_of_the_recording() {
        let morning = model(9, 45, 600);
        for (typed, wanted) in [
            ("start=09:45:56.439", "start in 56.439s..56.44s"),
            ("start in 09:45..09:46", "start in 0ns..60s"),
            ("start>=09:50:00", "start>=300s"),
            ("start<=09:50", "start<360s"),
            ("end>09:45:01", "end>=2s"),
            ("start>08:00", "start>=-6240s"),
            ("start<1s", "start<1s"),
        ] {
            assert_eq!(meant(&morning, typed), wanted, "{typed}");
        }
    }

    #[test]
    fn times_of_day_after_midnight_are_on_the_next_day() {
        let night = model(23, 58, 600);
        assert_eq!(meant(&night, "start>=00:01"), "start>=180s");
        assert_eq!(meant(&night, "start>=23:59"), "start>=60s");
    }

    #[test]
    fn recordings_without_a_date_have_no_times_of_day() {
        let filter: Filter = "start=09:45".parse().unwrap();
        let error = resolved(&Model::default(), &[filter]).unwrap_err().to_string();
        assert!(error.contains("start=09:45") && error.contains("counts from the start of the machine"), "{error}");
        for text in
            ["start=24:00", "start=09:60", "start=9:45:60", "start=09:45:01.", "start=09:45:01.x", "duration=09:45"]
        {
            let parsed = text.parse::<Filter>();
            assert!(parsed.is_err() || text.ends_with("01."), "{text}: {parsed:?}");
        }
    }
}
