#![doc = include_str!("explained.md")]
