//! Strict validation of the browser's screenshots, which are PNG images.
//!
//! The screenshot is untrusted: a page may have taken over the browser, and people open the image
//! in the bundle. The parser therefore checks the whole structure: only known chunks, no text
//! chunks, no data after the end.

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// PNG chunk types that a screenshot may contain.
const KNOWN: &[&[u8]] = &[
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"sRGB", b"gAMA", b"cHRM", b"pHYs", b"sBIT",
];
/// Maximum width and height of a screenshot, in pixels.
const SIDE: u32 = 16_384;

/// Returns width and height of a PNG image in pixels; `None` for an invalid image.
pub(super) fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(SIGNATURE)?;
    let mut found = None;
    loop {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        if !KNOWN.contains(&kind.as_slice()) || after.len() < length.checked_add(4)? {
            return None;
        }
        let (data, after) = after.split_at(length);
        if found.is_none() {
            let (width, more) = data.split_first_chunk::<4>()?;
            let (height, _) = more.split_first_chunk::<4>()?;
            let (width, height) = (u32::from_be_bytes(*width), u32::from_be_bytes(*height));
            let fits = (1..=SIDE).contains(&width) && (1..=SIDE).contains(&height);
            if kind != b"IHDR" || length != 13 || !fits {
                return None;
            }
            found = Some((width, height));
        }
        // Skips the checksum.
        rest = after.get(4..)?;
        if kind == b"IEND" {
            return found.filter(|_| rest.is_empty() && length == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(data.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(kind);
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    fn picture(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        chunks
            .iter()
            .for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }

    #[test]
    fn png_size_is_returned_only_for_a_valid_file_without_metadata_or_trailing_data() {
        let head = chunk(b"IHDR", &[0, 0, 5, 0, 0, 0, 2, 208, 8, 6, 0, 0, 0]);
        let (data, end) = (chunk(b"IDAT", b"xyz"), chunk(b"IEND", b""));
        let good = picture(&[head.clone(), data.clone(), end.clone()]);
        assert_eq!(size(&good), Some((1280, 720)));
        let mut trailing = good.clone();
        trailing.extend_from_slice(b"<?php");
        let bad = [
            trailing,
            good[..good.len() - 1].to_vec(),
            b"GIF89a".to_vec(),
            picture(&[data.clone(), end.clone()]),
            picture(&[head.clone(), chunk(b"tEXt", b"a\0b"), end.clone()]),
            picture(&[
                chunk(b"IHDR", &[0, 0, 0, 0, 0, 0, 2, 208, 8, 6, 0, 0, 0]),
                end,
            ]),
            SIGNATURE.to_vec(),
        ];
        for bytes in bad {
            assert_eq!(size(&bytes), None);
        }
    }
}
