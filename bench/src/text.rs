//! Numbers as a reader wants them: the spread of some values, and how they are written.

/// The median of some values, and their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// Returns the spread of the values; NaN for none.
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

/// Formats a number in about four digits, with separators from a thousand on.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == f64::INFINITY => return "∞".into(),
        v if v.fract() == 0.0 || v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => 5,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut separated = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && !separated.ends_with('-') {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let of = |values: &[f64]| {
            let Spread { median, min, max } = spread(values);
            (median, min, max)
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0));
        assert!(spread(&[]).median.is_nan());
    }

    #[test]
    fn numbers_have_about_four_digits() {
        let written = [
            0.0, 0.004_21, 0.0421, 0.5, 14.789, 146.23, 1234.5, 1e6, -1e6,
        ]
        .map(number);
        let expected = [
            "0",
            "0.00421",
            "0.0421",
            "0.500",
            "14.79",
            "146.2",
            "1,234",
            "1,000,000",
        ];
        assert_eq!(written[..8], expected);
        assert_eq!(written[8], "-1,000,000");
        assert_eq!(number(f64::INFINITY), "∞");
    }
}
