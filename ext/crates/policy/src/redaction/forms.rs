//! The spellings in which a configured value commonly travels.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// Every spelling of one value; some may be equal.
pub(super) fn spellings(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut all = vec![bytes.to_vec(), bytes.iter().rev().copied().collect()];
    for alphabet in [STANDARD, URL_SAFE] {
        all.extend(base64_cores(bytes, alphabet));
    }
    for digits in [UPPER, LOWER] {
        all.push(bytes.iter().flat_map(|b| pair(*b, digits)).collect());
        let encoded = percent_encode(bytes, digits);
        // As a form field, where a blank is a plus.
        all.push(encoded.replace("%20", "+").into_bytes());
        all.push(encoded.into_bytes());
        all.push(ascii_json(value, digits).replace('/', "\\/").into_bytes());
        all.push(ascii_json(value, digits).into_bytes());
    }
    if let Ok(json) = serde_json::to_string(value) {
        let inner = &json[1..json.len() - 1];
        all.push(inner.replace('/', "\\/").into_bytes());
        all.push(inner.as_bytes().to_vec());
    }
    all
}

/// The part of a value's base64 that does not depend on what surrounds it, for
/// each of the three alignments.
fn base64_cores(value: &[u8], alphabet: &[u8; 64]) -> Vec<Vec<u8>> {
    (0..3)
        .filter_map(|shift: usize| {
            let mut padded = vec![0u8; shift];
            padded.extend_from_slice(value);
            let whole = padded.len() / 3 * 3;
            let encoded: Vec<u8> = padded[..whole]
                .chunks_exact(3)
                .flat_map(|c| {
                    let n = (u32::from(c[0]) << 16) | (u32::from(c[1]) << 8) | u32::from(c[2]);
                    [18, 12, 6, 0].map(|s| alphabet[(n >> s) as usize & 63])
                })
                .collect();
            let skip = [0, 2, 3][shift];
            let core = encoded.get(skip..)?.to_vec();
            (core.len() >= super::SECRET_MIN_BYTES).then_some(core)
        })
        .collect()
}

fn pair(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]
}

fn percent_encode(value: &[u8], digits: &[u8; 16]) -> String {
    let mut out = String::with_capacity(value.len());
    for &byte in value {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.extend(pair(byte, digits).map(char::from));
        }
    }
    out
}

/// As a JSON string whose writer keeps to ASCII, which PHP does by default.
fn ascii_json(value: &str, digits: &[u8; 16]) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    let inner = json
        .get(1..json.len().saturating_sub(1))
        .unwrap_or_default();
    let mut out = String::with_capacity(inner.len());
    for unit in inner.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => {
                out.push_str("\\u");
                for byte in unit.to_be_bytes() {
                    out.extend(pair(byte, digits).map(char::from));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_encoders_are_met() {
        let all: Vec<String> = spellings("pa/ss\"word 1 é!")
            .into_iter()
            .map(|form| String::from_utf8_lossy(&form).into_owned())
            .collect();
        for wanted in [
            "pa/ss\"word 1 é!",
            // json_encode() of PHP, without and with JSON_UNESCAPED_SLASHES
            "pa\\/ss\\\"word 1 \\u00e9!",
            "pa/ss\\\"word 1 \\u00e9!",
            // rawurlencode() and urlencode()
            "pa%2Fss%22word%201%20%C3%A9%21",
            "pa%2Fss%22word+1+%C3%A9%21",
            // bin2hex()
            "70612f737322776f7264203120c3a921",
        ] {
            assert!(all.iter().any(|form| form == wanted), "{wanted} {all:?}");
        }
        // base64 of "x" + value + "y": the part that the value alone decides
        assert!(
            all.iter()
                .any(|form| form == "hL3NzIndvcmQgMSDDqS"
                    || "eHBhL3NzIndvcmQgMSDDqSF5".contains(form))
        );
    }
}
