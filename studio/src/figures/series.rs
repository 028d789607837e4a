//! [`Series`]: a curve in a bounded number of points, each the mean of some values with their smallest and largest one.
//!
//! A curve is not smoothed: where values are gathered, the range that they had is kept with their mean. A value that is not a number
//! is a gap.

/// Most points of a series.
const MOST: usize = 512;

/// Some values in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place of the last value.
    pub x: f64,
    /// Moment of the last value, in milliseconds since the Unix epoch; 0 if it is not known.
    pub at_ms: u64,
    /// Mean; not a number if one of the values was none.
    pub mean: f64,
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
    values: u32,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Series {
    points: Vec<Point>,
    /// Values of a full point.
    values_per_point: u32,
}

impl Series {
    /// Appends a value that was measured at a moment; `None` is a gap. Points at or after `x` are removed first: a process that
    /// continues from an earlier state writes them anew.
    pub fn push(&mut self, x: f64, at_ms: u64, value: Option<f64>) {
        while self.points.last().is_some_and(|last| last.x >= x) {
            self.points.pop();
        }
        let value = value.unwrap_or(f64::NAN);
        let new = Point {
            x,
            at_ms,
            mean: value,
            low: value,
            high: value,
            values: 1,
        };
        match self.points.last_mut() {
            Some(last) if last.values < self.values_per_point => *last = last.and(&new),
            _ => self.points.push(new),
        }
        if self.points.len() > MOST {
            self.points = self
                .points
                .chunks(2)
                .filter_map(|pair| pair.iter().copied().reduce(|left, right| left.and(&right)))
                .collect();
            self.values_per_point = 2 * self.values_per_point.max(1);
        }
    }

    /// Points in ascending order of `x`.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

/// Newest point of a curve that is a number.
pub fn newest(points: &[Point]) -> Option<&Point> {
    points.iter().rfind(|point| point.mean.is_finite())
}

impl Point {
    /// A single value.
    pub fn single(x: f64, value: f64) -> Self {
        Self::with_interval(x, value, value, value)
    }

    /// A point with an interval of its own, e.g. a rating.
    pub fn with_interval(x: f64, mean: f64, low: f64, high: f64) -> Self {
        Self {
            x,
            at_ms: 0,
            mean,
            low,
            high,
            values: 1,
        }
    }

    /// Returns the values at another place.
    pub fn moved(self, x: f64) -> Self {
        Self { x, ..self }
    }

    fn and(&self, next: &Self) -> Self {
        let values = self.values + next.values;
        let sum = self.mean * f64::from(self.values) + next.mean * f64::from(next.values);
        Self {
            x: next.x,
            at_ms: next.at_ms,
            mean: sum / f64::from(values),
            low: self.low.min(next.low),
            high: self.high.max(next.high),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_mean_and_its_extremes_in_few_points() {
        let mut series = Series::default();
        for step in 0..100_000_u32 {
            let value = if step == 31_415 {
                100.0
            } else {
                f64::from(step % 2)
            };
            series.push(f64::from(step), step as u64, Some(value));
        }
        assert!(series.points().len() <= MOST, "{}", series.points().len());
        assert!(series.points().iter().any(|point| point.high == 100.0));
        assert!(series.points().iter().all(|point| point.low == 0.0));
        let last = newest(series.points()).unwrap();
        assert_eq!((last.x, last.at_ms, last.mean), (99_999.0, 99_999, 0.5));
    }

    #[test]
    fn a_step_that_is_repeated_replaces_the_later_ones_and_a_gap_stays_one() {
        let mut series = Series::default();
        for (step, value) in [(1.0, Some(1.0)), (2.0, None), (3.0, Some(3.0)), (2.0, Some(5.0))] {
            series.push(step, 0, value);
        }
        let means: Vec<f64> = series.points().iter().map(|point| point.mean).collect();
        assert_eq!(means, [1.0, 5.0]);
        series.push(3.0, 0, None);
        assert!(series.points()[2].mean.is_nan());
        assert_eq!(newest(series.points()).unwrap().x, 2.0);
    }
}
