//! gRPC's framing of messages: a byte that says whether it is compressed, four of length, the message.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::call::Status;

const HEAD: usize = 5;

/// What servers take, unless told otherwise.
const MOST_BYTES: usize = 4 << 20;

/// Takes messages out of a stream of bytes, however it is cut.
#[derive(Debug, Default)]
pub(super) struct Frames(BytesMut);

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole message; none where more bytes are needed.
    pub fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((&[compressed, a, b, c, d], rest)) = self.0.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        match compressed {
            0 => {}
            1 => return Err(Status::Unimplemented),
            _ => return Err(Status::Internal),
        }
        if length > MOST_BYTES {
            return Err(Status::ResourceExhausted);
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.0.advance(HEAD);
        Ok(Some(self.0.split_to(length).freeze()))
    }

    /// Whether a message was begun and not ended.
    pub fn is_cut(&self) -> bool {
        !self.0.is_empty()
    }
}

/// The message in its frame.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_however_the_stream_is_cut() {
        let stream = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for size in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                frames.push(piece);
                while let Some(message) = frames.next().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, [&b"one"[..], b"", b"three"]);
            assert!(!frames.is_cut());
        }
    }

    #[test]
    fn garbage_has_its_status() {
        for (bytes, status) in [
            ([1, 0, 0, 0, 0], Status::Unimplemented),
            ([b'G'; 5], Status::Internal),
            ([0, 255, 255, 255, 255], Status::ResourceExhausted),
        ] {
            let mut frames = Frames::default();
            frames.push(&bytes);
            assert_eq!(frames.next(), Err(status));
        }
    }
}
