//! An upstream that gives every request the same answer.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

/// Answers each request without a body, until the connection ends.
pub(crate) fn answer_each(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    let (mut read, mut filled) = ([0; 4_096], 0);
    loop {
        let more = stream.read(&mut read[filled..])?;
        if more == 0 {
            return Ok(());
        }
        filled += more;
        if read[..filled].ends_with(b"\r\n\r\n") {
            stream.write_all(answer)?;
            filled = 0;
        }
    }
}
