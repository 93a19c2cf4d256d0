use super::*;

const BLACK: [u8; 4] = [0, 0, 0, 255];

fn blank(width: u32, height: u32) -> Picture {
    Picture {
        width,
        height,
        bytes: vec![255; (width * height * 4) as usize],
    }
}

fn with(mut picture: Picture, pixels: &[(u32, u32, [u8; 4])]) -> Picture {
    for (x, y, colour) in pixels {
        picture.put(*x, *y, *colour);
    }
    picture
}

fn rule(threshold: f64, antialiased: Antialiased) -> PixelRule {
    PixelRule {
        threshold,
        antialiased,
    }
}

#[test]
fn encoded_picture_is_decoded_to_the_same_pixels_and_a_truncated_or_other_file_is_refused() {
    let picture = with(blank(7, 5), &[(3, 2, [1, 2, 3, 4]), (6, 4, BLACK)]);
    let file = picture.encode().unwrap();
    assert_eq!(super::super::png::size(&file), Some((7, 5)));
    assert_eq!(Picture::decode(&file), Ok(picture));
    for bytes in [&b"GIF89a"[..], b"", &file[..file.len() / 2]] {
        let error = Picture::decode(bytes).unwrap_err();
        assert!(matches!(error, PictureError::Unreadable { .. }), "{error}");
    }
}

#[test]
fn picture_with_too_many_pixels_is_refused_before_its_pixels_are_decoded() {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 16_000, 16_000);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    // Only the header is written; the decoder never reaches the missing data.
    drop(encoder.write_header());
    let mut file = file.split_at(33).0.to_vec();
    file.extend_from_slice(b"\0\0\0\x01IDATx\0\0\0\0");
    let error = Picture::decode(&file).unwrap_err();
    assert_eq!(
        error,
        PictureError::TooLarge {
            width: 16_000,
            height: 16_000
        }
    );
}

#[test]
fn differing_pixels_are_counted_and_joined_to_regions() {
    let near = with(
        blank(200, 100),
        &[(10, 10, BLACK), (20, 12, BLACK), (150, 90, BLACK)],
    );
    let rule = rule(0.1, Antialiased::Counts);
    let found = compare(&blank(200, 100), &near, rule).unwrap();
    assert_eq!((found.pixels, found.total), (3, 20_000));
    assert_eq!(
        found.regions,
        [
            Region {
                x: 10,
                y: 10,
                width: 11,
                height: 3,
                pixels: 2
            },
            Region {
                x: 150,
                y: 90,
                width: 1,
                height: 1,
                pixels: 1
            }
        ]
    );
    assert_eq!(found.picture.colour(10, 10), Some([255.0, 0.0, 0.0]));
    let same = compare(&near, &near, rule).unwrap();
    assert_eq!((same.pixels, same.ratio(), same.regions.len()), (0, 0.0, 0));
}

#[test]
fn pixel_counts_as_different_only_if_its_difference_is_above_the_threshold() {
    let grey = with(blank(20, 20), &[(5, 5, [235, 235, 235, 255])]);
    for (threshold, pixels) in [(0.0, 1), (0.05, 1), (0.1, 0), (1.0, 0)] {
        let rule = rule(threshold, Antialiased::Counts);
        let found = compare(&blank(20, 20), &grey, rule).unwrap();
        assert_eq!(found.pixels, pixels, "{threshold}");
    }
}

#[test]
fn pixels_outside_one_of_the_pictures_count_as_different() {
    let rule = rule(0.1, Antialiased::Ignored);
    let found = compare(&blank(20, 10), &blank(10, 20), rule).unwrap();
    assert_eq!((found.picture.width, found.picture.height), (20, 20));
    assert_eq!((found.total, found.pixels), (400, 300));
    // A transparent pixel looks like a white one.
    let clear = with(blank(5, 5), &[(2, 2, [0, 0, 0, 0])]);
    assert_eq!(compare(&blank(5, 5), &clear, rule).unwrap().pixels, 0);
}

#[test]
fn antialiased_edge_counts_only_if_the_rule_counts_antialiasing() {
    // A vertical edge between black and white; the candidate has a grey column on the edge.
    let edge = |grey: Option<u8>| {
        let mut picture = blank(20, 20);
        for y in 0..20 {
            for x in 0..10 {
                picture.put(x, y, BLACK);
            }
            if let Some(grey) = grey.filter(|_| y % 2 == 0) {
                picture.put(10, y, [grey, grey, grey, 255]);
            }
        }
        picture
    };
    let (source, candidate) = (edge(None), edge(Some(128)));
    assert_eq!(source.colour(10, 0), Some([255.0; 3]));
    let counted = compare(&source, &candidate, rule(0.1, Antialiased::Counts)).unwrap();
    assert_eq!((counted.pixels, counted.antialiased), (10, 0));
    let ignored = compare(&source, &candidate, rule(0.1, Antialiased::Ignored)).unwrap();
    assert_eq!((ignored.pixels, ignored.antialiased), (0, 10));
}
