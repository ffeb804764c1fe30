use http::Method;

use super::Refusal;

/// The longest head, in bytes.
pub const HEAD_LIMIT: usize = 16 * 1024;
/// The longest request target, in bytes.
const TARGET_LIMIT: usize = 4 * 1024;
/// The most header lines.
const MOST_LINES: usize = 64;
/// The longest body of a request, in bytes; chunks count as what they hold. An order has a few hundred, a basket some
/// thousands.
pub(crate) const BODY_LIMIT: usize = 256 * 1024;

/// Where a request's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// Where its chunks say. Nothing more is read from its connection afterwards.
    Chunked,
}

/// The head of a request, read in the strictest grammar of HTTP/1.1.
#[derive(Debug)]
pub struct Head<'a> {
    method: Method,
    target: &'a str,
    lines: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Head<'a> {
    /// Returns the length of the head with which `bytes` begin; `None` if its end has not arrived.
    ///
    /// # Errors
    ///
    /// [`Refusal`] as soon as no further byte can make it a head.
    pub fn end(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
        // No TLS handshake, no empty line before the request.
        if bytes.first().is_some_and(|first| !first.is_ascii_uppercase()) {
            return Err(Refusal::Malformed);
        }
        let mut start = 0;
        while let Some(length) = bytes[start..].iter().position(|&byte| byte == b'\n') {
            let line = &bytes[start..start + length];
            // A parser that takes a bare line feed for the end of a line reads another head.
            let Some(line) = line.strip_suffix(b"\r") else { return Err(Refusal::Malformed) };
            start += length + 1;
            if line.is_empty() {
                return if start > HEAD_LIMIT { Err(Refusal::HeadTooLong) } else { Ok(Some(start)) };
            }
        }
        if bytes.len() >= HEAD_LIMIT { Err(Refusal::HeadTooLong) } else { Ok(None) }
    }

    /// Reads a whole head, with the empty line that ends it.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it is not HTTP/1.1, or asks for something other than a path of this server.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if Self::end(bytes)? != Some(bytes.len()) {
            return Err(Refusal::Malformed);
        }
        let mut lines =
            bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let (method, target) = request_line(lines.next().unwrap_or_default())?;
        let lines: Vec<_> =
            lines.take_while(|line| !line.is_empty()).map(header_line).collect::<Result<_, _>>()?;
        if lines.len() > MOST_LINES {
            return Err(Refusal::HeadTooLong);
        }
        Ok(Self { method, target, lines })
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns path and query as they were sent.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.target
    }

    /// Returns the values of a header.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter(move |(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Returns the value of a header that must not be repeated.
    ///
    /// # Errors
    ///
    /// [`Refusal::Repeated`].
    pub fn one(&self, name: &str) -> Result<Option<&'a [u8]>, Refusal> {
        let mut values = self.all(name);
        let value = values.next();
        if values.next().is_some() { Err(Refusal::Repeated) } else { Ok(value) }
    }

    /// Returns where the body ends.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if that can be read in two ways, or if there must not be a body.
    pub fn framing(&self) -> Result<Framing, Refusal> {
        let (mut lengths, mut codings) = (self.all("content-length"), self.all("transfer-encoding"));
        let framing = match (lengths.next(), codings.next()) {
            (None, None) => Framing::Length(0),
            (Some(length), None) => Framing::Length(length_of(length)?),
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
            _ => return Err(Refusal::Framing),
        };
        if lengths.next().is_some() || codings.next().is_some() {
            return Err(Refusal::Framing);
        }
        match framing {
            Framing::Length(0) => Ok(framing),
            _ if self.method == Method::GET || self.method == Method::DELETE => Err(Refusal::UnexpectedBody),
            Framing::Length(length) if length > BODY_LIMIT as u64 => Err(Refusal::BodyTooLong),
            _ => Ok(framing),
        }
    }
}

fn request_line(line: &[u8]) -> Result<(Method, &str), Refusal> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    if version != b"HTTP/1.1" {
        return Err(if version.starts_with(b"HTTP/") { Refusal::Version } else { Refusal::Malformed });
    }
    let target = std::str::from_utf8(target).map_err(|_| Refusal::Malformed)?;
    if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::Malformed);
    }
    let method = match method {
        b"GET" => Method::GET,
        b"POST" => Method::POST,
        b"PUT" => Method::PUT,
        b"DELETE" => Method::DELETE,
        b"PATCH" => Method::PATCH,
        other if other.iter().all(|&byte| is_token(byte)) => return Err(Refusal::Method),
        _ => return Err(Refusal::Malformed),
    };
    if !target.starts_with('/') {
        return Err(Refusal::NotAPath);
    }
    if target.len() > TARGET_LIMIT { Err(Refusal::HeadTooLong) } else { Ok((method, target)) }
}

/// Splits a header line. A folded line begins with a blank, which is no part of a name.
fn header_line(line: &[u8]) -> Result<(&str, &[u8]), Refusal> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or(Refusal::Malformed)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
        return Err(Refusal::Malformed);
    }
    // Before the blanks are cut off: a carriage return is one of them.
    if value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(Refusal::Malformed);
    }
    let name = std::str::from_utf8(name).map_err(|_| Refusal::Malformed)?;
    Ok((name, value.trim_ascii()))
}

/// Reads a length as one decimal number without signs, lists or leading zeros.
fn length_of(text: &[u8]) -> Result<u64, Refusal> {
    let plain = text == b"0" || text.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    if !plain || !text.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::Framing);
    }
    // Longer than any number of bytes that is read.
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Refusal::BodyTooLong)
}

/// True for the characters of a method or of a header's name (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
