//! Compares two pictures pixel by pixel.
//!
//! The difference of two colours is their distance in the YIQ colour space, whose axes are weighted
//! by what people see (Kotsarenko and Ramos, "Measuring perceived color difference using YIQ NTSC
//! transmission color space in mobile applications", 2010). A pixel that differs only by
//! anti-aliasing is found by its neighbours (Vyšniauskas, "Anti-aliased pixel and intensity slope
//! detector", 2009).

use super::task::{Antialiased, PixelRule};
use std::io::Cursor;

/// Maximum number of pixels of a picture. A comparison has three pictures with four bytes per pixel
/// in memory.
const PIXELS: u64 = 24_000_000;
/// Maximum size of the decoder's buffers, in bytes.
const DECODER: usize = 256 * 1024 * 1024;
/// Square of the distance of black and white, the largest distance of two colours.
const FARTHEST: f64 = 35215.0;
/// Side of the squares that are joined to regions, in pixels.
const CELL: u32 = 16;

/// Why a PNG cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PictureError {
    /// The file is not a PNG, or damaged.
    #[error("it is not a readable PNG: {why}")]
    Unreadable {
        /// The decoder's reason.
        why: String,
    },
    /// The picture has too many pixels.
    #[error("it has {width}x{height} pixels; at most {PIXELS} pixels are compared")]
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// A picture with four bytes per pixel: red, green, blue, alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, PictureError> {
        let unreadable = |why: String| PictureError::Unreadable { why };
        let limits = png::Limits { bytes: DECODER };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
        decoder.set_transformations(
            png::Transformations::normalize_to_color8() | png::Transformations::ALPHA,
        );
        let mut reader = decoder.read_info().map_err(|e| unreadable(e.to_string()))?;
        let (width, height) = (reader.info().width, reader.info().height);
        if u64::from(width) * u64::from(height) > PIXELS {
            return Err(PictureError::TooLarge { width, height });
        }
        let size = reader
            .output_buffer_size()
            .ok_or_else(|| unreadable("it is too large".to_owned()))?;
        let mut buffer = vec![0; size];
        let frame = reader
            .next_frame(&mut buffer)
            .map_err(|e| unreadable(e.to_string()))?;
        buffer.truncate(frame.buffer_size());
        let bytes = match frame.color_type {
            png::ColorType::Rgba => buffer,
            png::ColorType::GrayscaleAlpha => buffer
                .chunks_exact(2)
                .flat_map(|pixel| match pixel {
                    [grey, alpha] => [*grey, *grey, *grey, *alpha],
                    _ => [0; 4],
                })
                .collect(),
            other => {
                return Err(unreadable(format!(
                    "its colour type {other:?} is not supported"
                )));
            }
        };
        Ok(Self {
            width,
            height,
            bytes,
        })
    }

    /// Encodes the picture as PNG.
    pub(super) fn encode(&self) -> Result<Vec<u8>, PictureError> {
        let unwritable = |e: png::EncodingError| PictureError::Unreadable { why: e.to_string() };
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(unwritable)?;
        writer.write_image_data(&self.bytes).map_err(unwritable)?;
        writer.finish().map_err(unwritable)?;
        Ok(file)
    }

    /// Returns the colour of a pixel over white; `None` outside of the picture.
    fn colour(&self, x: u32, y: u32) -> Option<[f64; 3]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let at = (y as usize * self.width as usize + x as usize) * 4;
        let pixel = self.bytes.get(at..at + 4)?;
        let alpha = f64::from(*pixel.get(3)?) / 255.0;
        let over = |byte: u8| 255.0 + (f64::from(byte) - 255.0) * alpha;
        match pixel {
            [red, green, blue, _] => Some([over(*red), over(*green), over(*blue)]),
            _ => None,
        }
    }

    /// Returns whether both pictures have the same bytes at a pixel.
    fn same(&self, other: &Self, x: u32, y: u32) -> bool {
        let at = |picture: &Self| {
            let at = (y as usize * picture.width as usize + x as usize) * 4;
            (x < picture.width && y < picture.height).then_some(at)
        };
        match (at(self), at(other)) {
            (Some(a), Some(b)) => self.bytes.get(a..a + 4) == other.bytes.get(b..b + 4),
            _ => false,
        }
    }

    fn put(&mut self, x: u32, y: u32, colour: [u8; 4]) {
        let at = (y as usize * self.width as usize + x as usize) * 4;
        if let Some(pixel) = self.bytes.get_mut(at..at + 4) {
            pixel.copy_from_slice(&colour);
        }
    }
}

fn brightness([red, green, blue]: [f64; 3]) -> f64 {
    red * 0.298_895_31 + green * 0.586_622_47 + blue * 0.114_482_23
}

/// Returns the square of the perceived distance of two colours.
fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [red, green, blue] = [one[0] - other[0], one[1] - other[1], one[2] - other[2]];
    let luma = brightness([red, green, blue]);
    let in_phase = red * 0.595_977_99 - green * 0.274_176_1 - blue * 0.321_801_89;
    let quadrature = red * 0.211_470_17 - green * 0.522_617_11 + blue * 0.311_146_94;
    0.5053 * luma * luma + 0.299 * in_phase * in_phase + 0.1957 * quadrature * quadrature
}

/// Rectangle that contains neighbouring pixels that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Number of differing pixels in it.
    pub(super) pixels: u64,
}

/// Result of comparing two pictures.
#[derive(Debug)]
pub(super) struct Difference {
    /// Number of pixels that differ. Pixels that only one of the pictures has differ.
    pub(super) pixels: u64,
    /// Number of pixels that differ only by anti-aliasing and do not count.
    pub(super) antialiased: u64,
    /// Number of all pixels of the smallest picture that contains both.
    pub(super) total: u64,
    /// Regions, the one with the most differing pixels first.
    pub(super) regions: Vec<Region>,
    /// The source in light grey, with differing pixels in red and anti-aliased ones in yellow.
    pub(super) picture: Picture,
}

impl Difference {
    /// Returns the share of pixels that differ, from 0 to 1.
    #[allow(
        clippy::cast_precision_loss,
        reason = "at most 48 million pixels, which a double holds exactly"
    )]
    pub(super) fn ratio(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.pixels as f64 / self.total as f64
        }
    }
}

/// Compares two pictures from their upper left corners.
pub(super) fn compare(
    source: &Picture,
    candidate: &Picture,
    rule: PixelRule,
) -> Result<Difference, PictureError> {
    let width = source.width.max(candidate.width);
    let height = source.height.max(candidate.height);
    let total = u64::from(width) * u64::from(height);
    if total > PIXELS {
        return Err(PictureError::TooLarge { width, height });
    }
    let size = usize::try_from(total * 4).map_err(|_| PictureError::TooLarge { width, height })?;
    let mut picture = Picture {
        width,
        height,
        bytes: vec![255; size],
    };
    let mut cells = Cells::new(width, height);
    let (mut pixels, mut antialiased) = (0, 0);
    let limit = FARTHEST * rule.threshold * rule.threshold;
    for y in 0..height {
        for x in 0..width {
            let (one, other) = (source.colour(x, y), candidate.colour(x, y));
            let differs = match (one, other) {
                _ if source.same(candidate, x, y) => false,
                (Some(one), Some(other)) => distance(one, other) > limit,
                _ => true,
            };
            let smoothed = differs
                && rule.antialiased == Antialiased::Ignored
                && one.is_some()
                && other.is_some()
                && (is_smoothed(source, candidate, x, y) || is_smoothed(candidate, source, x, y));
            let colour = if smoothed {
                antialiased += 1;
                [255, 220, 0, 255]
            } else if differs {
                pixels += 1;
                cells.add(x, y);
                [255, 0, 0, 255]
            } else {
                let grey = one.map_or(255.0, |one| 255.0 + (brightness(one) - 255.0) * 0.15);
                let grey = byte(grey);
                [grey, grey, grey, 255]
            };
            picture.put(x, y, colour);
        }
    }
    Ok(Difference {
        pixels,
        antialiased,
        total,
        regions: cells.regions(),
        picture,
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to a byte"
)]
fn byte(value: f64) -> u8 {
    value.clamp(0.0, 255.0) as u8
}

/// Positions of the neighbours of a pixel that are in the picture.
fn neighbours(picture: &Picture, x: u32, y: u32) -> impl Iterator<Item = (u32, u32)> {
    let (width, height) = (picture.width, picture.height);
    let columns = x.saturating_sub(1)..=(x + 1).min(width.saturating_sub(1));
    columns.flat_map(move |column| {
        let rows = y.saturating_sub(1)..=(y + 1).min(height.saturating_sub(1));
        rows.map(move |row| (column, row))
            .filter(move |place| *place != (x, y))
    })
}

/// Returns whether a pixel is part of a smoothed edge: it lies between a darker and a brighter
/// neighbour, and one of these belongs to an area of one colour in both pictures.
fn is_smoothed(picture: &Picture, other: &Picture, x: u32, y: u32) -> bool {
    let Some(own) = picture.colour(x, y).map(brightness) else {
        return false;
    };
    let mut equal = u32::from(on_border(picture, x, y));
    let (mut darkest, mut brightest) = ((0.0, (x, y)), (0.0, (x, y)));
    for (column, row) in neighbours(picture, x, y) {
        let step = picture.colour(column, row).map_or(0.0, brightness) - own;
        if step == 0.0 {
            equal += 1;
            // A pixel with many equal neighbours is part of an area, not of an edge.
            if equal > 2 {
                return false;
            }
        } else if step < darkest.0 {
            darkest = (step, (column, row));
        } else if step > brightest.0 {
            brightest = (step, (column, row));
        }
    }
    if darkest.0 == 0.0 || brightest.0 == 0.0 {
        return false;
    }
    let in_areas =
        |(column, row): (u32, u32)| in_area(picture, column, row) && in_area(other, column, row);
    in_areas(darkest.1) || in_areas(brightest.1)
}

fn on_border(picture: &Picture, x: u32, y: u32) -> bool {
    x == 0 || y == 0 || x + 1 >= picture.width || y + 1 >= picture.height
}

/// Returns whether a pixel has at least three neighbours of its own colour.
fn in_area(picture: &Picture, x: u32, y: u32) -> bool {
    let Some(own) = picture.colour(x, y) else {
        return false;
    };
    let equal = neighbours(picture, x, y)
        .filter(|(column, row)| picture.colour(*column, *row) == Some(own))
        .count();
    equal + usize::from(on_border(picture, x, y)) > 2
}

/// Squares of the picture with their differing pixels.
struct Cells {
    columns: u32,
    rows: Vec<Option<Region>>,
}

impl Cells {
    fn new(width: u32, height: u32) -> Self {
        let columns = width.div_ceil(CELL);
        let rows = height.div_ceil(CELL);
        Self {
            columns,
            rows: vec![None; columns as usize * rows as usize],
        }
    }

    fn add(&mut self, x: u32, y: u32) {
        let at = (y / CELL) as usize * self.columns as usize + (x / CELL) as usize;
        let one = Region {
            x,
            y,
            width: 1,
            height: 1,
            pixels: 1,
        };
        if let Some(cell) = self.rows.get_mut(at) {
            *cell = Some(cell.map_or(one, |cell| joined(cell, one)));
        }
    }

    /// Joins neighbouring squares to regions.
    fn regions(mut self) -> Vec<Region> {
        let columns = self.columns as usize;
        let mut found = Vec::new();
        for start in 0..self.rows.len() {
            let Some(mut region) = self.rows.get_mut(start).and_then(Option::take) else {
                continue;
            };
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                let (row, column) = (at / columns, at % columns);
                for near_row in row.saturating_sub(1)..=row + 1 {
                    for near in column.saturating_sub(1)..=(column + 1).min(columns - 1) {
                        let at = near_row * columns + near;
                        if let Some(cell) = self.rows.get_mut(at).and_then(Option::take) {
                            region = joined(region, cell);
                            open.push(at);
                        }
                    }
                }
            }
            found.push(region);
        }
        found.sort_by_key(|region| (std::cmp::Reverse(region.pixels), region.y, region.x));
        found
    }
}

fn joined(one: Region, other: Region) -> Region {
    let (x, y) = (one.x.min(other.x), one.y.min(other.y));
    let right = (one.x + one.width).max(other.x + other.width);
    let bottom = (one.y + one.height).max(other.y + other.height);
    Region {
        x,
        y,
        width: right - x,
        height: bottom - y,
        pixels: one.pixels + other.pixels,
    }
}

#[cfg(test)]
mod tests;
