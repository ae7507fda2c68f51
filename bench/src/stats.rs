//! The few statistics needed.

/// The middle of some values, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// The spread of the values; NaN of nothing.
pub fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    };
    Spread {
        median,
        min: sorted.first().copied().unwrap_or(f64::NAN),
        max: sorted.last().copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_ends_are_the_ends() {
        let of = |values: &[f64]| {
            let Spread { median, min, max } = spread(values);
            (median, min, max)
        };
        assert_eq!(of(&[3.0, -1.0, 2.0]), (2.0, -1.0, 3.0));
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), (2.5, 1.0, 4.0));
        assert_eq!(of(&[7.0]), (7.0, 7.0, 7.0));
        assert!(spread(&[]).median.is_nan());
    }
}
