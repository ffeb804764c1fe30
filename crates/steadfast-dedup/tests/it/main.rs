//! The rows of the scenario matrix, over the two layers and a scripted gateway, in paused time.

mod gateway;
mod rig;

mod cancellation;
mod classification;
mod concurrency;
mod foreign;
mod matching;
mod reads;
mod timing;
