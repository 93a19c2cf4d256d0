//! Times as people write them.

/// Milliseconds of `90s`, `15m`, `4h`, `1d` or `500ms`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<u64> {
    let units: [(&str, u64); 5] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];
    let (number, factor) = units
        .iter()
        .find_map(|&(unit, factor)| text.strip_suffix(unit).map(|number| (number, factor)))?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits)?;
    number.checked_mul(factor)
}

/// The same the other way round, in the largest unit that divides it.
#[must_use]
pub fn show_duration(milliseconds: u64) -> String {
    let units: [(&str, u64); 4] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
    ];
    let whole = units
        .iter()
        .find(|(_, factor)| milliseconds >= *factor && milliseconds.is_multiple_of(*factor));
    match whole {
        Some((unit, factor)) => format!("{}{unit}", milliseconds / factor),
        None => format!("{milliseconds}ms"),
    }
}
