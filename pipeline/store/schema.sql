-- The store: one plan's evidence and its scores, or imported rows only. SQLite keeps these comments.
-- Evidence tables (checkpoint … failure) are written by run; score_* tables are recomputed from them at
-- any time. Times are UTC text; durations are milliseconds; log-probabilities are natural logarithms.

CREATE TABLE plan (            -- the one plan of this store, as it was when last run
  id               INTEGER PRIMARY KEY CHECK (id = 1),
  name             TEXT NOT NULL,
  version          TEXT NOT NULL,
  sha256           TEXT NOT NULL,      -- canonical JSON of the plan file
  effective_sha256 TEXT NOT NULL,      -- canonical JSON of plan plus deviations
  locked_at        TEXT,               -- NULL: not locked
  ledger_head      TEXT,               -- SHA-256 of the last deviation
  json             TEXT NOT NULL,      -- the effective plan
  simulated        INTEGER NOT NULL CHECK (simulated IN (0, 1))
) STRICT;

CREATE TABLE run (             -- one call of `preval run` or `preval rehearse`
  id            INTEGER PRIMARY KEY,
  started_at    TEXT NOT NULL,
  ended_at      TEXT,                  -- NULL: still running, or killed
  outcome       TEXT,                  -- complete | incomplete | drift | backend | interrupted | refused | failed | killed
  exit_code     INTEGER,
  tool_version  TEXT NOT NULL,
  git_commit    TEXT,
  plan_sha256   TEXT NOT NULL,         -- provenance, no part of a prediction's key
  effective_sha256 TEXT NOT NULL,
  ledger_head   TEXT,
  exploratory   INTEGER NOT NULL CHECK (exploratory IN (0, 1)),
  record_limit  INTEGER,               -- --limit
  shard         INTEGER,               -- --shard: this part of the records …
  shards        INTEGER,               -- … of so many; NULL: all of them (suite/shard.h)
  command       TEXT NOT NULL,         -- what was called, without folders: they are this machine's
  host          TEXT,                  -- processor, cores, operating system
  CHECK ((shard IS NULL) = (shards IS NULL) AND coalesce(shard BETWEEN 1 AND shards, 1))
) STRICT;

CREATE TABLE subset (          -- what the plan registered, and what the last run found
  id                  INTEGER PRIMARY KEY,
  dataset             TEXT NOT NULL,   -- group of the plan
  scoring             TEXT NOT NULL CHECK (scoring IN ('suite', 'tasks', 'own')),
  name                TEXT NOT NULL,
  position            INTEGER NOT NULL,-- order in the plan
  type                TEXT NOT NULL CHECK (type IN ('noul', 'choice', 'score')),
  registered_sha256   TEXT NOT NULL,
  registered_records  INTEGER NOT NULL,
  registered_families INTEGER NOT NULL,
  status              TEXT NOT NULL DEFAULT 'missing' CHECK (status IN ('ok', 'missing', 'mismatch')),
                                       -- ok: verified by the last run that found the file
  found_sha256        TEXT,
  problem             TEXT,
  in_plan             INTEGER NOT NULL DEFAULT 1 CHECK (in_plan IN (0, 1)), -- 0: a deviation took it out
  UNIQUE (dataset, name)
) STRICT;

CREATE TABLE option_set (      -- a question's stored keys; most records of a subset share one
  id     INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE          -- of the JSON array of keys
) STRICT;

CREATE TABLE option (
  set_id   INTEGER NOT NULL REFERENCES option_set,
  position INTEGER NOT NULL,           -- 0-based, the record's own order
  key      TEXT NOT NULL,              -- true | false, option name, "0" … "N-1"
  PRIMARY KEY (set_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE record (          -- one question of a data file
  id        INTEGER PRIMARY KEY,
  subset_id INTEGER NOT NULL REFERENCES subset,
  record_id TEXT NOT NULL,
  sha256    BLOB NOT NULL CHECK (length(sha256) = 32),  -- of the line's bytes
  position  INTEGER NOT NULL,          -- 0-based line in the file: splits depend on file order
  family    TEXT NOT NULL,
  set_id    INTEGER NOT NULL REFERENCES option_set,
  target    INTEGER NOT NULL,          -- position of the right option
  current   INTEGER NOT NULL CHECK (current IN (0, 1)), -- 0: the file has since changed
  row_sha256 BLOB NOT NULL CHECK (length(row_sha256) = 32), -- of what the row says: store/row_digest.h
  UNIQUE (subset_id, record_id, sha256)
) STRICT;

CREATE TABLE prompt (          -- a record as it was put to models
  id        INTEGER PRIMARY KEY,
  record_id INTEGER NOT NULL REFERENCES record,
  variant   TEXT NOT NULL CHECK (variant IN ('none', 'reversed')),
  form      TEXT NOT NULL CHECK (form IN ('messages', 'native')), -- native: the record's own input
  sha256    BLOB NOT NULL CHECK (length(sha256) = 32),
  current   INTEGER NOT NULL CHECK (current IN (0, 1)), -- 0: the wording has since changed
  UNIQUE (record_id, variant, form, sha256)
) STRICT;

CREATE TABLE arm (             -- checkpoint on backend
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  position       INTEGER NOT NULL,     -- order in the plan
  checkpoint     TEXT NOT NULL,
  backend        TEXT NOT NULL,
  kind           TEXT NOT NULL,        -- server protocol
  read           TEXT NOT NULL,        -- exact | top-k | text-top-k | native
  confirmatory   INTEGER NOT NULL CHECK (confirmatory IN (0, 1)),
  source         TEXT NOT NULL DEFAULT 'run' CHECK (source IN ('run', 'simulated', 'imported')),
  status         TEXT NOT NULL DEFAULT 'registered'
                 CHECK (status IN ('registered', 'started', 'not run', 'failed')),
  reason         TEXT,                 -- of 'not run' and 'failed': "terms not accepted", …
  in_plan        INTEGER NOT NULL DEFAULT 1 CHECK (in_plan IN (0, 1))  -- 0: a deviation took it out
) STRICT;

CREATE TABLE configuration (   -- everything of an arm that can change an answer, the server included
  id       INTEGER PRIMARY KEY,
  arm_id   INTEGER NOT NULL REFERENCES arm,
  sha256   TEXT NOT NULL,              -- of settings and identity together
  settings TEXT NOT NULL,              -- JSON: checkpoint, backend and prompt settings of the plan
  identity TEXT NOT NULL,              -- JSON: who answered
  current  INTEGER NOT NULL CHECK (current IN (0, 1)), -- 1: what counts. A server comes to count with
                                       -- its first answer, and stops when plan or server change
  set_aside INTEGER NOT NULL DEFAULT 0 CHECK (set_aside IN (0, 1)), -- 1: the server changed while it was read from
  UNIQUE (arm_id, sha256)
) STRICT;

CREATE TABLE prediction (      -- one answer; its key is all that can change it
  id               INTEGER PRIMARY KEY,
  configuration_id INTEGER NOT NULL REFERENCES configuration,
  prompt_id        INTEGER NOT NULL REFERENCES prompt,
  repeat           INTEGER NOT NULL,
  exploratory      INTEGER NOT NULL CHECK (exploratory IN (0, 1)),
  run_id           INTEGER NOT NULL REFERENCES run,  -- provenance: tells lock, deviations, --limit
  predicted        INTEGER NOT NULL,   -- option position
  tied             INTEGER NOT NULL CHECK (tied IN (0, 1)),
  tied_at_bound    INTEGER NOT NULL CHECK (tied_at_bound IN (0, 1)),
  label_mass       REAL,
  entropy          REAL,               -- nats, over the returned log-probabilities
  argmax_is_label  INTEGER CHECK (argmax_is_label IN (0, 1)),
  labels_returned  INTEGER,            -- NULL: unknown (imported rows)
  floor            REAL,               -- top-k: log-probability given to absent labels
  bound            REAL,               -- top-k: upper bound of the log-probability of absent labels
  prompt_tokens    INTEGER,
  requests         INTEGER NOT NULL,
  latency_ms       REAL,
  printed_sum      REAL,               -- native: sum of the printed probabilities
  sum_is_off       INTEGER CHECK (sum_is_off IN (0, 1)),     -- native: by more than 0.05 from 1
  choice_differs   INTEGER CHECK (choice_differs IN (0, 1)), -- native: named choice and largest number
  value            REAL,               -- native: a score as an expected level; then there are no labels
  row_sha256       BLOB NOT NULL CHECK (length(row_sha256) = 32), -- of the answer and its labels
  UNIQUE (configuration_id, prompt_id, repeat, exploratory)
) STRICT;

CREATE TABLE label (           -- one label of one answer, in the order presented
  prediction_id INTEGER NOT NULL REFERENCES prediction ON DELETE CASCADE,
  position      INTEGER NOT NULL,
  option        INTEGER NOT NULL,      -- option position in the record's own order
  logprob       REAL,
  probability   REAL NOT NULL,
  source        INTEGER NOT NULL REFERENCES label_source,
  PRIMARY KEY (prediction_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE label_source (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO label_source VALUES (0,'exact'), (1,'top'), (2,'floor'), (3,'text'), (4,'native'), (5,'imported');

CREATE TABLE failure (         -- every attempt that gave no answer
  id               INTEGER PRIMARY KEY,
  run_id           INTEGER NOT NULL REFERENCES run,
  arm_id           INTEGER NOT NULL REFERENCES arm,
  stage            TEXT NOT NULL,      -- read, or what else the server was asked for: boot, preflight, …
  configuration_id INTEGER REFERENCES configuration, -- these three: of a read
  prompt_id        INTEGER REFERENCES prompt,
  repeat           INTEGER,
  attempt          INTEGER NOT NULL,   -- 1, 2, …
  final            INTEGER NOT NULL CHECK (final IN (0, 1)), -- 1: given up in this run
  class            TEXT NOT NULL,
  http_status      INTEGER,
  message          TEXT NOT NULL,
  body_sha256      TEXT,
  body_head        TEXT,               -- first 500 bytes, secrets removed
  at               TEXT NOT NULL,
  row_sha256       BLOB CHECK (length(row_sha256) = 32), -- of a read
  CHECK ((stage = 'read') = (configuration_id IS NOT NULL AND prompt_id IS NOT NULL AND repeat IS NOT NULL))
) STRICT;
CREATE INDEX failure_item ON failure (configuration_id, prompt_id, repeat);

CREATE TABLE timing (          -- latency pass: questions that are asked once more, for the time they take
  id               INTEGER PRIMARY KEY,
  configuration_id INTEGER NOT NULL REFERENCES configuration,
  prompt_id        INTEGER NOT NULL REFERENCES prompt,
  exploratory      INTEGER NOT NULL CHECK (exploratory IN (0, 1)),
  run_id           INTEGER NOT NULL REFERENCES run,
  latency_ms       REAL NOT NULL,      -- summed over its requests
  requests         INTEGER NOT NULL,
  predicted        INTEGER NOT NULL,   -- option position, as answered then
  UNIQUE (configuration_id, prompt_id, exploratory)
) STRICT;

CREATE TABLE tokeniser (       -- what turns prompts into tokens: checkpoint, prompt settings, engine
  id     INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE tokens (          -- a prompt as it is sent by token: asked of a server once, then kept
  tokeniser_id INTEGER NOT NULL REFERENCES tokeniser,
  prompt_id    INTEGER NOT NULL REFERENCES prompt,
  tokens       BLOB NOT NULL,          -- ids, each as a LEB128 number
  labels       BLOB NOT NULL,          -- those of the labels, in the order presented
  PRIMARY KEY (tokeniser_id, prompt_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (           -- what a run asked of an arm's servers
  run_id        INTEGER NOT NULL REFERENCES run,
  arm_id        INTEGER NOT NULL REFERENCES arm,
  calls         INTEGER NOT NULL,      -- requests of reads
  prompt_tokens INTEGER NOT NULL,      -- that servers read for them, as far as they say
  seconds       REAL NOT NULL,         -- servers up
  usd           REAL,                  -- NULL: the plan has no price
  PRIMARY KEY (run_id, arm_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE stage (           -- verify, boot, preflight, smoke, reads, stop: when and how it went
  id         INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL REFERENCES run,
  arm_id     INTEGER REFERENCES arm,
  name       TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at   TEXT,
  seconds    REAL,
  outcome    TEXT,                     -- ok | failed | interrupted; NULL: under way, or killed
  detail     TEXT
) STRICT;

CREATE TABLE event (           -- what else is worth knowing later: retries, resumes, drops, warnings
  id     INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run,
  arm_id INTEGER REFERENCES arm,
  at     TEXT NOT NULL,
  kind   TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE TABLE finding (         -- what preflight tried on a server, and what came of it
  id         INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL REFERENCES run,
  arm_id     INTEGER NOT NULL REFERENCES arm,
  capability TEXT NOT NULL,
  ok         INTEGER NOT NULL CHECK (ok IN (0, 1)),
  verdict    TEXT NOT NULL,
  evidence   TEXT NOT NULL
) STRICT;

CREATE TABLE deviation (       -- the ledger as the last run found it
  number INTEGER PRIMARY KEY,
  field  TEXT NOT NULL,
  "from" TEXT NOT NULL,
  "to"   TEXT NOT NULL,
  why    TEXT NOT NULL,
  at     TEXT NOT NULL,
  sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE seal (            -- what the store held when runs ended, each chained to the one before
  number INTEGER PRIMARY KEY,
  at     TEXT NOT NULL,
  digest TEXT NOT NULL,                -- the logical digest of the evidence: store/digest.h
  sha256 TEXT NOT NULL,                -- of the seal
  json   TEXT NOT NULL                 -- the seal, as in NAME.seal.json
) STRICT;

CREATE TABLE published (       -- figures of others, per subset, from the plan's published file
  subset         TEXT PRIMARY KEY,
  model          TEXT NOT NULL,
  n              INTEGER NOT NULL,
  accuracy       REAL NOT NULL,
  ece            REAL,
  brier          REAL,
  dataset_sha256 TEXT NOT NULL,        -- the records they were measured on
  source         TEXT NOT NULL
) STRICT;

-- Scores. scope is a subset's name; 'all', 'noul', 'choice' or 'score' for pooled groups; or 'macro'.
-- Only repeat 0 of the base variant is scored: more repeats measure how steady an arm is, not how right.

CREATE TABLE score_accuracy (
  arm_id        INTEGER NOT NULL REFERENCES arm,
  dataset       TEXT NOT NULL,
  scope         TEXT NOT NULL,
  scope_kind    TEXT NOT NULL CHECK (scope_kind IN ('subset', 'pooled', 'macro')),
  n_subsets     INTEGER NOT NULL,      -- verified subsets, which are what is counted
  of_subsets    INTEGER NOT NULL,      -- subsets registered for it
  n_registered  INTEGER NOT NULL,      -- records of verified subsets
  n_answered    INTEGER NOT NULL,
  n_correct     INTEGER NOT NULL,
  accuracy      REAL,                  -- n_correct / n_registered; macro: mean of the subsets' accuracies
  low           REAL,                  -- Wilson, z = 1.959964
  high          REAL,
  method        TEXT,
  answered_only REAL,                  -- n_correct / n_answered
  baseline      REAL,                  -- share of the most frequent target
  baseline_key  TEXT,
  n_tied        INTEGER NOT NULL,
  n_one_label   INTEGER NOT NULL,      -- answers with one label of several returned
  all_returned  REAL,                  -- share of answers with every label returned; NULL: unknown
  label_mass    REAL,                  -- upper median
  PRIMARY KEY (arm_id, dataset, scope_kind, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_calibration (       -- over answered reads
  arm_id       INTEGER NOT NULL REFERENCES arm,
  dataset      TEXT NOT NULL,
  scope        TEXT NOT NULL,
  n            INTEGER NOT NULL,
  bins         INTEGER NOT NULL,
  spacing      TEXT NOT NULL,          -- equal width
  edges        TEXT NOT NULL,          -- left-closed | right-closed: which side of a bin is in it
  ece          REAL,
  floor_mean   REAL,                   -- ECE of a perfectly calibrated model with these confidences
  floor_95     REAL,
  brier        REAL,
  nll          REAL,
  nll_clip     REAL NOT NULL,
  ece_after_50 REAL,                   -- mean over the splits, after a temperature fitted on 50 labels
  labels       INTEGER,               -- how many each temperature was fitted on
  splits       INTEGER,
  temperature_low  REAL,               -- least and largest fitted temperature over the splits
  temperature_high REAL,
  at_edge      INTEGER,                -- splits whose temperature is at an end of the grid
  PRIMARY KEY (arm_id, dataset, scope, bins, edges)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_bin (               -- reliability: one bin of one calibration row
  arm_id     INTEGER NOT NULL REFERENCES arm,
  dataset    TEXT NOT NULL,
  scope      TEXT NOT NULL,
  bins       INTEGER NOT NULL,
  bin        INTEGER NOT NULL,
  low        REAL NOT NULL,
  high       REAL NOT NULL,
  n          INTEGER NOT NULL,
  confidence REAL,                     -- mean
  accuracy   REAL,
  PRIMARY KEY (arm_id, dataset, scope, bins, bin)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_bounds (            -- top-k reads: one calibration row at both ends of what absent labels can be
  arm_id          INTEGER NOT NULL REFERENCES arm,
  dataset         TEXT NOT NULL,
  scope           TEXT NOT NULL,
  n               INTEGER NOT NULL,    -- answered reads
  n_incomplete    INTEGER NOT NULL,    -- of which lack at least one label
  n_tied_at_bound INTEGER NOT NULL,    -- of which what is absent could make another label as likely as the chosen one
  bins            INTEGER NOT NULL,
  edges           TEXT NOT NULL,
  nll_clip        REAL NOT NULL,       -- NLL at nothing: of this, where the right label is absent
  confidence      REAL NOT NULL,       -- mean probability of the chosen label as scored, absent labels at the floor
  confidence_at_bound   REAL NOT NULL, -- every absent label at its bound
  confidence_at_nothing REAL NOT NULL, -- every absent label at minus infinity
  ece_at_bound     REAL NOT NULL,
  ece_at_nothing   REAL NOT NULL,
  brier_at_bound   REAL NOT NULL,
  brier_at_nothing REAL NOT NULL,
  nll_at_bound     REAL NOT NULL,
  nll_at_nothing   REAL NOT NULL,
  PRIMARY KEY (arm_id, dataset, scope, bins, edges)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_median (            -- upper medians over the subsets of a suite, as the study gives them
  arm_id       INTEGER NOT NULL REFERENCES arm,
  dataset      TEXT NOT NULL,
  n_subsets    INTEGER NOT NULL,      -- subsets with answers
  of_subsets   INTEGER NOT NULL,
  ece          REAL,
  ece_after_50 REAL,                   -- NULL as well while a subset with answers lacks it
  brier        REAL,
  nll          REAL,
  label_mass   REAL,
  PRIMARY KEY (arm_id, dataset)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_agreement (         -- same predicted option, over records answered on both arms
  arm_a   INTEGER NOT NULL REFERENCES arm,
  arm_b   INTEGER NOT NULL REFERENCES arm,
  dataset TEXT NOT NULL,
  scope   TEXT NOT NULL,
  scope_kind TEXT NOT NULL CHECK (scope_kind IN ('subset', 'pooled')),
  same_checkpoint INTEGER NOT NULL CHECK (same_checkpoint IN (0, 1)),
  n       INTEGER NOT NULL,
  same    INTEGER NOT NULL,
  share   REAL,
  low     REAL,
  PRIMARY KEY (arm_a, arm_b, dataset, scope_kind, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE score_published (         -- published figures beside ours, unpaired
  arm_id             INTEGER NOT NULL REFERENCES arm,
  dataset            TEXT NOT NULL,
  scope              TEXT NOT NULL,
  scope_kind         TEXT NOT NULL CHECK (scope_kind IN ('subset', 'pooled')),
  comparable         INTEGER NOT NULL CHECK (comparable IN (0, 1)), -- 1: byte-identical records
  why_not            TEXT,             -- "different records", "subset missing", …
  n_subsets          INTEGER NOT NULL, -- comparable subsets in it
  of_subsets         INTEGER NOT NULL, -- published subsets of the scope that the plan has
  published_n        INTEGER NOT NULL,
  n                  INTEGER NOT NULL, -- our registered records
  published_accuracy REAL,             -- pooled: over the comparable subsets only
  accuracy           REAL,
  difference         REAL,             -- published minus ours
  low                REAL,             -- unpaired, z = 1.959964
  high               REAL,
  published_ece      REAL,             -- subsets only
  ece                REAL,
  PRIMARY KEY (arm_id, dataset, scope_kind, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE scored (                  -- when the score tables were computed, and from what
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  at           TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  predictions  INTEGER NOT NULL
) STRICT;

CREATE TABLE dictionary (              -- meaning and unit of every column of every view
  view    TEXT NOT NULL,
  column  TEXT NOT NULL,
  unit    TEXT NOT NULL,
  meaning TEXT NOT NULL,
  PRIMARY KEY (view, column)
) STRICT, WITHOUT ROWID;
