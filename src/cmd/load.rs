//! `sidegate load`: the generator on its own.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

pub use crate::cmd::load_report::{LoadReport, Percentiles};
use crate::exit::{self, Failure};
use crate::load::Url;
use crate::load::{Generator, LoadError, Request, RequestError, SliceLoad, SliceOutcome};
use crate::problem::Problem;
use crate::record::Load;
use crate::stop::Stop;
use crate::units;

/// How long opening all connections may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Longest run, and longest wait for an answer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Runs longer than this show their progress on a terminal.
const QUIET: Duration = Duration::from_secs(2);

/// Load a server on this machine over HTTP/1.1 and measure its latency.
///
/// With --rate the loop is open: requests are due at even distances and latency counts from when a request was due,
/// whether or not its connection was free; a server that stalls cannot hide it. Without, each connection sends its
/// next request when the last is answered (closed loop), which finds the capacity. Nothing is left out at the start.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to ask for; http only, and only addresses of this machine
    #[arg(value_name = "URL")]
    pub url: String,
    /// Keep-alive connections
    #[arg(short, long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub connections: u32,
    /// How long requests are sent, such as 3s or 250ms
    #[arg(short, long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Requests per second over all connections (default: closed loop)
    #[arg(short, long, value_name = "N", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Request method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// A request header, `name: value`; may be given several times
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub headers: Vec<String>,
    /// A request unanswered for this long after it was due is an error
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// CPUs the generator runs on, such as 1 or 2-3 (default: any)
    #[arg(long, value_name = "LIST", value_parser = units::parse_cpus)]
    pub cpu: Option<units::CpuList>,
    /// How the result is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Runs the load and prints its figures. 0 when at least one answer came as expected, 4 when none did, when nothing
/// could be reached, or when a signal cut the run short (the figures so far are printed).
pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let report = measure(args, stop)?;
    let mut out = anstream::stdout();
    let text = match args.format {
        Format::Text => report.to_string(),
        Format::Json => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has gone away is no failure of the measurement.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            let problem = Problem::new("", format!("cannot write to standard output: {e}"));
            return Err(Failure::environment(
                problem.help("the figures are lost: free some space, or print them elsewhere"),
            ));
        }
        _ => {}
    }
    Ok(if report.requests > 0 && !report.interrupted { exit::PASS } else { exit::INVALID })
}

/// Gives the load `args` describe.
pub fn measure(args: &Args, stop: &Stop) -> Result<LoadReport, Failure> {
    let url = Url::parse(&args.url)?;
    let request = request(args, &url)?;
    let to = url.loopback()?;
    if args.duration.is_zero() {
        return Err(Problem::new("", "a duration of 0 sends nothing").help("such as --duration 3s").into());
    }
    let cpus = args.cpu.clone().map_or_else(Vec::new, |list| list.0);
    let generator = Generator::start(&cpus).map_err(|e| cannot_start(&e))?;
    let load = args.rate.map_or(Load::Closed, |rate_rps| Load::Open { rate_rps });
    let slice = SliceLoad {
        unrecorded: Duration::ZERO,
        request_timeout: args.timeout,
        stop: stop.clone(),
        ..SliceLoad::new(Arc::from([request]), load, args.duration)
    };
    let pool = generator.connect_unless(stop, to, args.connections, CONNECT_DEADLINE).map_err(|e| failed(&e))?;
    let outcome = with_progress(args.duration, || generator.run(&pool, &slice)).map_err(|e| failed(&e))?;
    Ok(LoadReport::new(args, &outcome))
}

fn request(args: &Args, url: &Url) -> Result<Request, Problem> {
    let problem = |e: RequestError| Problem::new("", e.to_string());
    let mut request = Request::new(&args.method, &url.authority, &url.path).map_err(problem)?;
    for header in &args.headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Problem::new("", format!("`{header}` is not a header")).help("write it as `name: value`"))?;
        request = request.header(name.trim(), value.trim()).map_err(problem)?;
    }
    // Other statuses than 200 are errors by their number; any body is welcome.
    Ok(request)
}

fn cannot_start(error: &io::Error) -> Failure {
    let problem = Problem::new("", format!("cannot start the generator: {error}"));
    Failure::environment(match error.kind() {
        io::ErrorKind::InvalidInput => problem.help("--cpu names no CPU that this process may use"),
        _ => problem,
    })
}

fn failed(error: &LoadError) -> Failure {
    let problem = Problem::new("", error.to_string());
    Failure::environment(match error {
        LoadError::Refused { .. } => {
            problem.help("nothing listens there: is the server running, and is the port right?")
        }
        LoadError::Deadline { .. } => problem.help("use fewer --connections, or raise the server's limit"),
        LoadError::Connect { .. } => problem.help("`ulimit -n` limits how many connections can be open"),
        _ => problem,
    })
}

/// Runs `work` under a progress bar, if it is long and somebody watches.
fn with_progress(
    length: Duration,
    work: impl FnOnce() -> Result<SliceOutcome, LoadError>,
) -> Result<SliceOutcome, LoadError> {
    if length <= QUIET {
        return work();
    }
    let total_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let bar = indicatif::ProgressBar::new(total_ms);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{bar:40} {percent:>3} %, {msg} left") {
        bar.set_style(style);
    }
    let (done, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let started = std::time::Instant::now();
        let drawn = &bar;
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_millis(200)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let passed = started.elapsed().min(length);
                drawn.set_message(format!("{} s", (length - passed).as_secs_f64().ceil()));
                drawn.set_position(u64::try_from(passed.as_millis()).unwrap_or(total_ms));
            }
        });
        let outcome = work();
        drop(done);
        bar.finish_and_clear();
        outcome
    })
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = units::parse_duration(text).map_err(|e| e.to_string())?;
    if duration > LONGEST { Err("the longest time is 24h".to_owned()) } else { Ok(duration) }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 && rate <= 10_000_000.0 => Ok(rate),
        _ => Err("a rate is a number of requests per second above 0, at most 10000000, such as 5000".to_owned()),
    }
}
