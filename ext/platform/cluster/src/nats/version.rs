//! The lowest version of the server.

use crate::bus::BusError;

/// Lowest version. Series 2.10 has no strict servers, which [`super::strict`] demands.
const LOWEST: [u32; 3] = [2, 11, 1];

/// Refuses a server on which an account without rights on streams can destroy them (CVE-2025-30215,
/// repaired in 2.11.1), because such a server would void the separation of submitters. The version
/// decides; no function of the server is tried out.
///
/// # Errors
/// [`BusError::ServerTooOld`], also for a text that is no version.
pub(super) fn check(found: &str) -> Result<(), BusError> {
    match parse(found) {
        Some(version) if version >= LOWEST => Ok(()),
        Some(_) | None => Err(BusError::ServerTooOld {
            found: found.to_owned(),
            needed: LOWEST.map(|number| number.to_string()).join("."),
        }),
    }
}

/// Reads `MAJOR.MINOR.PATCH`. A version such as `2.12.0-RC.1` is before 2.12.0, but the versions that
/// matter here are releases, so the part after `-` is left out.
fn parse(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.split('-').next()?.split('.');
    let version = [
        numbers.next()?.parse().ok()?,
        numbers.next()?.parse().ok()?,
        numbers.next()?.parse().ok()?,
    ];
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_older_than_2_11_1_is_refused() {
        for good in ["2.11.1", "2.12.0", "2.12.0-RC.1", "2.15.1", "3.0.0"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "2.9.10", "2.10.27", "2.11.0", "1.4.1", "", "2.12", "2.12.0.1",
        ] {
            assert_eq!(
                check(bad),
                Err(BusError::ServerTooOld {
                    found: bad.to_owned(),
                    needed: "2.11.1".to_owned()
                })
            );
        }
    }
}
