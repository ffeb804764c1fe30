use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, sleep, timeout_at},
};

use super::{End, Line, Script, Step, patience::GIVE_UP};

/// The state of a connection after a script.
pub(crate) enum Rest<I> {
    /// It serves the next request; these bytes of it were read already.
    Kept(I, Bytes),
    /// It is over.
    Over,
    /// It is over, and so are all other connections of the server.
    AllReset,
}

/// Writes a script to a connection.
pub(crate) async fn play<I: Line>(mut io: I, script: Script) -> Rest<I> {
    let mut sent = Bytes::new();
    for step in script.steps {
        let goes_on = match step {
            Step::Send(bytes) => {
                sent = bytes;
                write(&mut io, &sent).await
            }
            Step::Trickle(bytes, pause) => {
                let mut goes_on = true;
                for byte in bytes {
                    goes_on = goes_on && linger(&mut io, pause).await && write(&mut io, &[byte]).await;
                }
                goes_on
            }
        };
        if !goes_on {
            return Rest::Over;
        }
    }
    match script.end {
        End::Keep => return Rest::Kept(io, Bytes::new()),
        End::SendAgain => {
            let mut ahead = BytesMut::new();
            let read = timeout_at(Instant::now() + GIVE_UP, io.read_buf(&mut ahead)).await;
            if matches!(read, Ok(Ok(1..))) && write(&mut io, &sent).await {
                return Rest::Kept(io, ahead.freeze());
            }
        }
        End::Reset => io.reset(),
        End::ResetAll => {
            // The answer must arrive before the connection is reset; otherwise this fault looks like the
            // others.
            sleep(Duration::from_millis(20)).await;
            io.reset();
            return Rest::AllReset;
        }
        End::Close => drop(io.shutdown().await),
        End::HalfClose => {
            drop(io.shutdown().await);
            linger(&mut io, GIVE_UP).await;
        }
        End::Hang => {
            linger(&mut io, GIVE_UP).await;
        }
        End::CloseOnRequest => {
            // Takes one byte of the request, so that a client can have written it.
            let _ = timeout_at(Instant::now() + GIVE_UP, io.read_u8()).await;
            drop(io.shutdown().await);
        }
    }
    Rest::Over
}

/// Writes all bytes; returns false if the client is gone.
async fn write<I: Line>(io: &mut I, bytes: &[u8]) -> bool {
    io.write_all(bytes).await.is_ok() && io.flush().await.is_ok()
}

/// Lets time pass and discards what the client sends; returns false if it went away.
async fn linger<I: Line>(io: &mut I, time: Duration) -> bool {
    let until = Instant::now() + time;
    let mut unread = [0; 1_024];
    loop {
        match timeout_at(until, io.read(&mut unread)).await {
            Err(_) => return true,
            Ok(Ok(0) | Err(_)) => return false,
            Ok(Ok(_)) => {}
        }
    }
}
