//! `envoy.service.ext_proc.v3`: an external processor that lets everything pass as it is.

use super::call::Status;

/// `ProcessingRequest`'s fields of what is to be processed, from `request_headers` (2) to `response_trailers` (7).
/// Those of `ProcessingResponse` stand in the same order, one lower.
const FIRST: u64 = 2;
const LAST: u64 = 7;
const REQUEST_BODY: u64 = 4;
const RESPONSE_BODY: u64 = 5;
/// `ProcessingRequest.protocol_config {request_body_mode (1), response_body_mode (2)}`, in the first message.
const PROTOCOL: u64 = 11;
/// `ProcessingMode.BodySendMode`: the body is what the processor sends back.
const FULL_DUPLEX: u64 = 4;

/// One stream, which is one HTTP request.
#[derive(Debug, Default)]
pub(super) struct Processor {
    /// Whether the bodies of request and response are to be sent back.
    duplex: [bool; 2],
}

impl Processor {
    /// The `ProcessingResponse` to a `ProcessingRequest`; none where nothing is asked.
    pub fn answer(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, Status> {
        let mut asked = None;
        for field in Fields(message) {
            match field? {
                (PROTOCOL, Value::Bytes(config)) => self.configure(config)?,
                (field @ FIRST..=LAST, Value::Bytes(content)) => asked = Some((field, content)),
                _ => {}
            }
        }
        let Some((field, content)) = asked else { return Ok(None) };
        let back = match field {
            REQUEST_BODY => self.duplex[0],
            RESPONSE_BODY => self.duplex[1],
            _ => false,
        };
        // BodyResponse {response (1): CommonResponse {body_mutation (3): BodyMutation {streamed_response (3): …}}}.
        // The fields of StreamedBodyResponse are those of HttpBody.
        let inner = if back { nest(1, &nest(3, &nest(3, content))) } else { Vec::new() };
        Ok(Some(nest(field - 1, &inner)))
    }

    fn configure(&mut self, config: &[u8]) -> Result<(), Status> {
        for field in Fields(config) {
            if let (field @ 1..=2, Value::Number(mode)) = field? {
                self.duplex[usize::from(field == 2)] = mode == FULL_DUPLEX;
            }
        }
        Ok(())
    }
}

/// A message as a field of another: tag, length, content.
fn nest(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    put_varint(&mut out, field << 3 | 2);
    put_varint(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in Protocol Buffers' wire format, in their order.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Status>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Status::Internal))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_question_has_its_answer() {
        let mut processor = Processor::default();
        for field in FIRST..=LAST {
            assert_eq!(processor.answer(&nest(field, b"\x0a\x00")), Ok(Some(vec![(field as u8 - 1) << 3 | 2, 0])));
        }
        assert_eq!(processor.answer(&[]), Ok(None));
    }

    #[test]
    fn a_body_that_is_to_be_sent_back_is() {
        let mut processor = Processor::default();
        let body = nest(1, b"hello");
        let question = [nest(PROTOCOL, &[0x08, 4]), nest(REQUEST_BODY, &body)].concat();
        let answer = nest(3, &nest(1, &nest(3, &nest(3, &body))));
        assert_eq!(processor.answer(&question), Ok(Some(answer)));
        assert_eq!(processor.answer(&nest(RESPONSE_BODY, &body)), Ok(Some(vec![0x22, 0])));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Processor::default().answer(&bytes);
        }
    }
}
