//! Script that makes a page see one fixed time.

/// Returns a script that runs before the page's own and fixes the time that `Date` returns. `time`
/// is an ISO 8601 timestamp with a time zone; the error text is one sentence.
pub(super) fn script(time: &str) -> Result<String, String> {
    if !is_timestamp(time) {
        return Err(format!(
            "frozen-time is {:?}, but must be a timestamp with time zone, like 2026-01-31T12:00:00Z",
            time.chars().take(60).collect::<String>()
        ));
    }
    Ok(format!(
        "(() => {{ const at = Date.parse('{time}'), Real = Date; \
         const Frozen = class Date extends Real {{ constructor(...given) {{ super(...(given.length ? given : [at])); }} static now() {{ return at; }} }}; \
         globalThis.Date = new Proxy(Frozen, {{ apply: () => new Frozen().toString() }}); Real.prototype.constructor = globalThis.Date; }})();"
    ))
}

/// Accepts `YYYY-MM-DDTHH:MM[:SS[.fraction]]` with `Z` or `±HH:MM`.
fn is_timestamp(text: &str) -> bool {
    let number = |part: Option<&str>, least: u32, most: u32, digits: usize| {
        part.is_some_and(|part| {
            part.len() == digits
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.parse().is_ok_and(|n: u32| (least..=most).contains(&n))
        })
    };
    let clock = |text: &str| {
        let mut parts = text.splitn(3, ':');
        let hour_and_minute = number(parts.next(), 0, 23, 2) && number(parts.next(), 0, 59, 2);
        let second = parts.next().is_none_or(|rest| {
            let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
            let digits = (1..=9).contains(&fraction.len());
            number(Some(whole), 0, 59, 2) && digits && fraction.bytes().all(|b| b.is_ascii_digit())
        });
        hour_and_minute && second
    };
    let Some((date, rest)) = text.split_once('T') else {
        return false;
    };
    let mut parts = date.splitn(3, '-');
    let day = number(parts.next(), 1970, 9999, 4)
        && number(parts.next(), 1, 12, 2)
        && number(parts.next(), 1, 31, 2);
    let (time, zone) = match rest.strip_suffix('Z') {
        Some(time) => (time, None),
        None => match rest.rfind(['+', '-']) {
            Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
            None => return false,
        },
    };
    let zone = zone.is_none_or(|zone| zone.len() == 5 && clock(zone));
    day && clock(time) && zone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_timestamps_with_a_time_zone_freeze_the_time() {
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00Z",
            "2026-01-31T12:00:00.123+05:30",
        ] {
            assert!(script(text).unwrap().contains(text), "{text}");
        }
        for text in [
            "2026-01-31T12:00:00",
            "2026-01-31",
            "2026-13-31T12:00:00Z",
            "2026-01-31T25:00:00Z",
            "2026-01-31T12:00:00Z');alert('",
            "2026-01-31T12:00:00+0530",
            "",
        ] {
            assert!(script(text).is_err(), "{text}");
        }
    }
}
