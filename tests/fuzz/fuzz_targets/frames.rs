//! The reader of frames (newline-delimited JSON) that a caller sends to the runner.
//!
//! The reader never hangs, whatever bytes it gets and however they are split. Each frame that it
//! accepts is the same after it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::os::unix::net::UnixStream;
use wp_codebox_control::{FrameReader, write_frame};

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else {
        return;
    };
    // An earlier reader has buffered the first part; the rest arrives through the socket, whose
    // buffer holds 16 KiB.
    let (ahead, rest) = data.split_at(data.len() * usize::from(cut) / 255);
    let Ok((mut caller, runner)) = UnixStream::pair() else {
        return;
    };
    let rest = &rest[..rest.len().min(16 * 1024)];
    caller.write_all(rest).expect("room for the rest");
    drop(caller);
    let mut reader = FrameReader::resume(runner, ahead.to_vec());
    let mut taken = 0;
    while let Ok(Some(frame)) = reader.next_frame() {
        taken += 1;
        assert!(taken <= data.len());
        let (writer, back) = UnixStream::pair().expect("a pair");
        if serde_json::to_vec(&frame).map_or(usize::MAX, |text| text.len()) < 16 * 1024 {
            write_frame(&writer, &frame).expect("room for one frame");
            drop(writer);
            let again = FrameReader::new(back)
                .next_frame()
                .expect("a written frame reads back");
            assert_eq!(again, Some(frame));
        }
    }
});
