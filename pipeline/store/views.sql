-- The views are the store's interface for people: joins are done, ids are names. Each column's unit and
-- meaning stands in the table `dictionary`. Plain SQLite (3.37 and newer) is enough: no SQL math functions.
--
-- What counts: answers of the current record, prompt and configuration, from subsets whose file is the
-- registered one; registered answers when the store has a registered run, else exploratory ones.

CREATE VIEW v_evidence AS
SELECT p.id                   AS prediction_id,
       c.arm_id               AS arm_id,
       r.subset_id            AS subset_id,
       r.id                   AS record_key,
       q.variant              AS variant,
       p.repeat               AS repeat,
       p.predicted            AS predicted,
       r.target               AS target,
       p.predicted = r.target AS correct
FROM prediction p
JOIN configuration c ON c.id = p.configuration_id
JOIN prompt q ON q.id = p.prompt_id
JOIN record r ON r.id = q.record_id
JOIN subset s ON s.id = r.subset_id
JOIN arm a ON a.id = c.arm_id
WHERE c.current = 1 AND q.current = 1 AND r.current = 1
  AND s.status = 'ok' AND s.in_plan = 1 AND a.in_plan = 1
  AND p.exploratory = (SELECT min(exploratory) FROM run);

CREATE VIEW v_prediction AS
SELECT a.name             AS arm,
       s.name             AS subset,
       r.record_id        AS record_id,
       e.variant          AS variant,
       e.repeat           AS repeat,
       po.key             AS predicted,
       ta.key             AS target,
       e.correct          AS correct,
       p.label_mass       AS label_mass,
       p.labels_returned  AS labels_returned,
       (SELECT count(*) FROM option o WHERE o.set_id = r.set_id) AS n_labels,
       p.tied             AS tied,
       a.read             AS read,
       p.latency_ms       AS latency_ms,
       s.dataset          AS dataset,
       s.type             AS type,
       r.family           AS family,
       r.position         AS record_position,
       (SELECT max(l.probability) FROM label l WHERE l.prediction_id = p.id) AS confidence,
       p.entropy          AS entropy,
       p.argmax_is_label  AS argmax_is_label,
       p.tied_at_bound    AS tied_at_bound,
       p.floor            AS floor,
       p.bound            AS bound,
       p.prompt_tokens    AS prompt_tokens,
       p.requests         AS requests,
       p.exploratory      AS exploratory,
       p.run_id           AS run,
       p.printed_sum      AS printed_sum,
       p.sum_is_off       AS sum_is_off,
       p.choice_differs   AS choice_differs,
       p.value            AS value,
       a.source = 'simulated' AS simulated
FROM v_evidence e
JOIN prediction p ON p.id = e.prediction_id
JOIN record r ON r.id = e.record_key
JOIN subset s ON s.id = e.subset_id
JOIN arm a ON a.id = e.arm_id
JOIN option po ON po.set_id = r.set_id AND po.position = p.predicted
JOIN option ta ON ta.set_id = r.set_id AND ta.position = r.target;

CREATE VIEW v_label AS
SELECT a.name        AS arm,
       s.name        AS subset,
       r.record_id   AS record_id,
       e.variant     AS variant,
       e.repeat      AS repeat,
       l.position    AS position,
       o.key         AS key,
       l.logprob     AS logprob,
       l.probability AS probability,
       k.name        AS source,
       l.option      AS option,
       l.option = e.target AS is_target,
       s.dataset     AS dataset,
       a.source = 'simulated' AS simulated
FROM v_evidence e
JOIN label l ON l.prediction_id = e.prediction_id
JOIN label_source k ON k.id = l.source
JOIN record r ON r.id = e.record_key
JOIN subset s ON s.id = e.subset_id
JOIN arm a ON a.id = e.arm_id
JOIN option o ON o.set_id = r.set_id AND o.position = l.option;

-- A letter stands for each of 26 options; position 26 is the 27th.
CREATE VIEW v_unreadable AS
SELECT a.name AS arm, s.name AS subset, w.n AS n, s.registered_records AS n_registered,
       w.n || ' of ' || s.registered_records || ' questions have up to ' || w.most ||
       ' options, reads by token take at most 26' AS reason,
       s.dataset
FROM (SELECT r.subset_id, count(*) AS n,
             max((SELECT count(*) FROM option o WHERE o.set_id = r.set_id)) AS most
      FROM record r JOIN option x ON x.set_id = r.set_id AND x.position = 26
      WHERE r.current = 1
      GROUP BY r.subset_id) w
JOIN subset s ON s.id = w.subset_id AND s.status = 'ok' AND s.in_plan = 1
JOIN arm a ON a.read <> 'native' AND a.in_plan = 1
ORDER BY a.position, s.position;

CREATE VIEW v_accuracy AS
WITH live AS (
  SELECT arm_id, subset_id, count(*) AS n, sum(correct) AS k
  FROM v_evidence WHERE variant = 'none' AND repeat = 0
  GROUP BY arm_id, subset_id),
headline AS (
  SELECT a.id AS arm_id, a.name AS arm, a.position AS arm_position, a.status, a.reason,
         a.source = 'simulated' AS simulated,
         s.name AS subset, s.dataset, s.position AS subset_position, s.type,
         s.status AS subset_status, s.registered_records AS n_registered,
         a.status = 'started' AND s.status = 'ok' AND coalesce(u.n, 0) < s.registered_records AS measured,
         coalesce(u.n, 0) AS n_unreadable, u.reason AS unreadable,
         coalesce(l.n, 0) AS n_answered, coalesce(l.k, 0) AS n_correct
  FROM arm a JOIN subset s
  LEFT JOIN live l ON l.arm_id = a.id AND l.subset_id = s.id
  LEFT JOIN v_unreadable u ON u.arm = a.name AND u.dataset = s.dataset AND u.subset = s.name
  WHERE a.in_plan = 1 AND s.in_plan = 1)
SELECT h.arm, h.subset, h.n_registered, h.n_answered, h.n_correct,
       CASE WHEN h.measured THEN h.n_correct * 1.0 / h.n_registered END AS accuracy,
       x.low, x.high,
       CASE WHEN h.measured AND h.n_answered > 0 THEN h.n_correct * 1.0 / h.n_answered END AS answered_only,
       x.baseline, x.baseline_key, x.method,
       CASE WHEN h.status <> 'started' THEN h.status || coalesce(': ' || h.reason, '')
            WHEN h.subset_status <> 'ok' THEN 'subset ' || h.subset_status
            WHEN h.n_unreadable >= h.n_registered THEN 'not readable: ' || h.unreadable
            WHEN h.n_answered = 0 THEN 'no answer'
            WHEN h.n_answered + h.n_unreadable < h.n_registered THEN 'incomplete'
            WHEN h.n_unreadable > 0 THEN 'complete but for what is not readable: ' || h.unreadable
            ELSE 'complete' END AS state,
       h.type, h.dataset, h.simulated
FROM headline h
LEFT JOIN score_accuracy x
  ON x.arm_id = h.arm_id AND x.dataset = h.dataset AND x.scope_kind = 'subset' AND x.scope = h.subset
 AND x.n_registered = h.n_registered AND x.n_answered = h.n_answered AND x.n_correct = h.n_correct
ORDER BY h.arm_position, h.subset_position;

CREATE VIEW v_agreement AS
SELECT a.name AS arm_a, b.name AS arm_b, x.scope AS subset, x.n, x.same, x.share, x.low,
       x.same_checkpoint, x.scope_kind, x.dataset,
       'simulated' IN (a.source, b.source) AS simulated
FROM score_agreement x
JOIN arm a ON a.id = x.arm_a
JOIN arm b ON b.id = x.arm_b
LEFT JOIN subset s ON x.scope_kind = 'subset' AND s.dataset = x.dataset AND s.name = x.scope
ORDER BY a.position, b.position, x.dataset, s.position IS NULL, s.position, x.scope;

CREATE VIEW v_disagreement AS
WITH base AS MATERIALIZED (
  SELECT arm_id, record_key, subset_id, predicted, correct, target
  FROM v_evidence WHERE variant = 'none' AND repeat = 0)
SELECT a.name AS arm_a, b.name AS arm_b, s.name AS subset, r.record_id,
       oa.key AS predicted_a, ob.key AS predicted_b, ot.key AS target,
       x.correct AS correct_a, y.correct AS correct_b,
       a.checkpoint = b.checkpoint AS same_checkpoint, s.dataset
FROM base x
JOIN base y ON y.record_key = x.record_key AND y.predicted <> x.predicted
JOIN arm a ON a.id = x.arm_id
JOIN arm b ON b.id = y.arm_id AND b.position > a.position
JOIN subset s ON s.id = x.subset_id
JOIN record r ON r.id = x.record_key
JOIN option oa ON oa.set_id = r.set_id AND oa.position = x.predicted
JOIN option ob ON ob.set_id = r.set_id AND ob.position = y.predicted
JOIN option ot ON ot.set_id = r.set_id AND ot.position = x.target;

CREATE VIEW v_calibration AS
SELECT a.name AS arm, x.scope AS subset, x.bins, x.spacing, x.edges, x.ece, x.floor_mean, x.floor_95,
       x.brier, x.nll, x.ece_after_50, x.n, x.nll_clip, x.labels, x.splits, x.temperature_low,
       x.temperature_high, x.at_edge, x.dataset, a.source = 'simulated' AS simulated
FROM score_calibration x
JOIN arm a ON a.id = x.arm_id
JOIN subset s ON s.dataset = x.dataset AND s.name = x.scope
ORDER BY a.position, s.position;

CREATE VIEW v_calibration_bins AS
SELECT a.name AS arm, x.scope AS subset, x.bins, x.bin, x.low, x.high, x.n, x.confidence, x.accuracy,
       x.dataset
FROM score_bin x
JOIN arm a ON a.id = x.arm_id
JOIN subset s ON s.dataset = x.dataset AND s.name = x.scope
ORDER BY a.position, s.position, x.bins, x.bin;

CREATE VIEW v_bounds AS
SELECT a.name AS arm, x.scope AS subset, x.n, x.n_incomplete, x.n_tied_at_bound, x.confidence,
       x.confidence_at_bound, x.confidence_at_nothing,
       min(x.confidence_at_bound, x.confidence_at_nothing) AS confidence_low,
       max(x.confidence_at_bound, x.confidence_at_nothing) AS confidence_high,
       c.ece, x.ece_at_bound, x.ece_at_nothing,
       min(x.ece_at_bound, x.ece_at_nothing) AS ece_low,
       max(x.ece_at_bound, x.ece_at_nothing) AS ece_high,
       c.brier, x.brier_at_bound, x.brier_at_nothing,
       min(x.brier_at_bound, x.brier_at_nothing) AS brier_low,
       max(x.brier_at_bound, x.brier_at_nothing) AS brier_high,
       c.nll, x.nll_at_bound, x.nll_at_nothing,
       min(x.nll_at_bound, x.nll_at_nothing) AS nll_low,
       max(x.nll_at_bound, x.nll_at_nothing) AS nll_high,
       x.bins, x.edges, x.nll_clip, x.dataset
FROM score_bounds x
JOIN arm a ON a.id = x.arm_id
JOIN subset s ON s.dataset = x.dataset AND s.name = x.scope
LEFT JOIN score_calibration c ON c.arm_id = x.arm_id AND c.dataset = x.dataset AND c.scope = x.scope
                             AND c.bins = x.bins AND c.edges = x.edges
ORDER BY a.position, s.position;

CREATE VIEW v_published_vs_ours AS
SELECT a.name AS arm, x.scope AS subset, x.published_accuracy, x.accuracy, x.difference, x.low, x.high,
       x.published_ece, x.ece, x.comparable, x.why_not, x.published_n, x.n, x.n_subsets, x.of_subsets,
       x.scope_kind, x.dataset, a.source = 'simulated' AS simulated
FROM score_published x
JOIN arm a ON a.id = x.arm_id
LEFT JOIN subset s ON x.scope_kind = 'subset' AND s.dataset = x.dataset AND s.name = x.scope
ORDER BY a.position, s.position IS NULL, s.position, x.scope;

CREATE VIEW v_completeness AS
WITH live AS (
  SELECT arm_id, subset_id, variant, repeat, count(*) AS n
  FROM v_evidence GROUP BY arm_id, subset_id, variant, repeat),
given_up AS (
  SELECT c.arm_id, r.subset_id, q.variant, f.repeat, count(DISTINCT r.id) AS n
  FROM failure f
  JOIN configuration c ON c.id = f.configuration_id AND c.current = 1
  JOIN prompt q ON q.id = f.prompt_id AND q.current = 1
  JOIN record r ON r.id = q.record_id AND r.current = 1
  JOIN run u ON u.id = f.run_id
  WHERE f.final = 1 AND u.exploratory = (SELECT min(exploratory) FROM run)
    AND NOT EXISTS (SELECT 1 FROM prediction p
                    WHERE p.configuration_id = f.configuration_id AND p.prompt_id = f.prompt_id
                      AND p.repeat = f.repeat AND p.exploratory = u.exploratory)
  GROUP BY c.arm_id, r.subset_id, q.variant, f.repeat),
asked AS (
  SELECT arm_id, subset_id, variant, repeat FROM live
  UNION SELECT arm_id, subset_id, variant, repeat FROM given_up
  UNION SELECT a.id, s.id, 'none', 0 FROM arm a JOIN subset s)
SELECT a.name AS arm, s.name AS subset, k.variant, k.repeat, s.registered_records AS n_registered,
       coalesce(l.n, 0) AS n_answered, coalesce(g.n, 0) AS n_failed,
       CASE WHEN a.status = 'started' AND s.status = 'ok'
            THEN max(s.registered_records - coalesce(l.n, 0) - coalesce(g.n, 0) - coalesce(u.n, 0), 0)
       END AS n_not_asked,
       CASE WHEN a.status = 'started' AND s.status = 'ok' THEN coalesce(u.n, 0) END AS n_unreadable,
       CASE WHEN a.status <> 'started' THEN a.status || coalesce(': ' || a.reason, '')
            WHEN s.status <> 'ok' THEN 'subset ' || s.status || coalesce(': ' || s.problem, '')
            WHEN coalesce(u.n, 0) >= s.registered_records THEN 'not readable: ' || u.reason
            WHEN coalesce(l.n, 0) = s.registered_records THEN 'complete'
            WHEN u.n > 0 AND coalesce(l.n, 0) + u.n = s.registered_records
                 THEN 'complete but for what is not readable: ' || u.reason
            ELSE 'incomplete' END AS state,
       s.dataset
FROM asked k
JOIN arm a ON a.id = k.arm_id
JOIN subset s ON s.id = k.subset_id
LEFT JOIN live l ON l.arm_id = k.arm_id AND l.subset_id = k.subset_id AND l.variant = k.variant
                AND l.repeat = k.repeat
LEFT JOIN given_up g ON g.arm_id = k.arm_id AND g.subset_id = k.subset_id AND g.variant = k.variant
                    AND g.repeat = k.repeat
LEFT JOIN v_unreadable u ON u.arm = a.name AND u.dataset = s.dataset AND u.subset = s.name
WHERE a.in_plan = 1 AND s.in_plan = 1
ORDER BY a.position, s.position, k.variant, k.repeat;

CREATE VIEW v_native AS
SELECT a.name AS arm, s.name AS subset, count(*) AS n_answered,
       sum(p.sum_is_off)     AS n_sum_is_off,
       sum(p.choice_differs) AS n_choice_differs,
       count(p.value)        AS n_values,
       s.dataset             AS dataset
FROM v_evidence e
JOIN prediction p ON p.id = e.prediction_id
JOIN arm a ON a.id = e.arm_id
JOIN subset s ON s.id = e.subset_id
WHERE a.read = 'native' AND e.variant = 'none' AND e.repeat = 0
GROUP BY a.id, s.id;

CREATE VIEW v_label_mass AS
WITH ranked AS (
  SELECT e.arm_id, e.subset_id, p.label_mass AS mass,
         row_number() OVER (PARTITION BY e.arm_id, e.subset_id ORDER BY p.label_mass) AS i,
         count(*) OVER (PARTITION BY e.arm_id, e.subset_id) AS n
  FROM v_evidence e JOIN prediction p ON p.id = e.prediction_id
  WHERE e.variant = 'none' AND e.repeat = 0 AND p.label_mass IS NOT NULL)
SELECT a.name AS arm, s.name AS subset, max(k.n) AS n,
       min(k.mass) AS least,
       max(CASE WHEN k.i = 1 + (k.n - 1) / 20 THEN k.mass END) AS p05,
       max(CASE WHEN k.i = 1 + (k.n - 1) / 4 THEN k.mass END)  AS p25,
       max(CASE WHEN k.i = 1 + k.n / 2 THEN k.mass END)        AS median,
       max(CASE WHEN k.i = k.n - (k.n - 1) / 4 THEN k.mass END) AS p75,
       max(k.mass) AS largest, s.dataset AS dataset
FROM ranked k
JOIN arm a ON a.id = k.arm_id
JOIN subset s ON s.id = k.subset_id
GROUP BY a.id, s.id;

CREATE VIEW v_latency AS
WITH timed AS (
  SELECT e.arm_id, e.subset_id, p.latency_ms AS ms,
         row_number() OVER (PARTITION BY e.arm_id, e.subset_id ORDER BY p.latency_ms) AS place,
         count(*) OVER (PARTITION BY e.arm_id, e.subset_id) AS n
  FROM v_evidence e JOIN prediction p ON p.id = e.prediction_id
  WHERE e.variant = 'none' AND e.repeat = 0 AND p.latency_ms IS NOT NULL)
SELECT a.name AS arm, s.name AS subset, max(t.n) AS n,
       avg(t.ms) AS mean_ms,
       avg(CASE WHEN t.place IN ((t.n + 1) / 2, (t.n + 2) / 2) THEN t.ms END) AS median_ms,
       max(CASE WHEN t.place = max(t.n * 9 / 10, 1) THEN t.ms END) AS p90_ms,
       max(CASE WHEN t.place = max(t.n * 99 / 100, 1) THEN t.ms END) AS p99_ms,
       min(t.ms) AS min_ms, max(t.ms) AS max_ms, s.dataset
FROM timed t
JOIN arm a ON a.id = t.arm_id
JOIN subset s ON s.id = t.subset_id
GROUP BY t.arm_id, t.subset_id
ORDER BY a.position, s.position;

CREATE VIEW v_failure AS
SELECT f.at, f.run_id AS run, a.name AS arm, s.name AS subset, r.record_id, q.variant, f.repeat,
       f.attempt, f.final, f.class, f.http_status, f.message, f.body_sha256, f.body_head, s.dataset,
       f.stage
FROM failure f
JOIN arm a ON a.id = f.arm_id
LEFT JOIN prompt q ON q.id = f.prompt_id
LEFT JOIN record r ON r.id = q.record_id
LEFT JOIN subset s ON s.id = r.subset_id
ORDER BY f.id;

CREATE VIEW v_exploratory AS
SELECT a.name AS arm, s.name AS subset, q.variant, p.repeat, count(*) AS n_answered,
       sum(p.predicted = r.target) AS n_correct,
       (SELECT min(exploratory) FROM run) AS counted, s.dataset, c.id AS configuration
FROM prediction p
JOIN configuration c ON c.id = p.configuration_id AND c.set_aside = 0
JOIN prompt q ON q.id = p.prompt_id AND q.current = 1
JOIN record r ON r.id = q.record_id AND r.current = 1
JOIN subset s ON s.id = r.subset_id
JOIN arm a ON a.id = c.arm_id
WHERE p.exploratory = 1
GROUP BY a.id, s.id, q.variant, p.repeat, c.id
ORDER BY a.position, s.position, q.variant, p.repeat, c.id;

CREATE VIEW v_unconfirmed AS
SELECT a.name AS arm, p.run_id AS run, count(*) AS n_answered
FROM prediction p
JOIN configuration c ON c.id = p.configuration_id AND c.current = 1
JOIN arm a ON a.id = c.arm_id
WHERE a.source = 'run' AND a.kind NOT IN ('simulated', 'replay')
  AND instr(c.settings, '"url":') > 0
  AND NOT EXISTS (SELECT 1 FROM stage g WHERE g.run_id = p.run_id AND g.arm_id = a.id
                  AND g.name = 'identity' AND g.outcome = 'ok')
GROUP BY a.id, p.run_id
ORDER BY a.position, p.run_id;

CREATE VIEW v_run AS
SELECT u.id AS run, u.started_at, u.ended_at, u.outcome, u.exit_code, u.exploratory, u.record_limit,
       u.tool_version, u.git_commit, u.host, u.plan_sha256, u.effective_sha256, u.ledger_head,
       u.command
FROM run u ORDER BY u.id;

CREATE VIEW v_stage AS
SELECT g.run_id AS run, a.name AS arm, g.name AS stage, g.started_at, g.ended_at, g.seconds, g.outcome,
       g.detail
FROM stage g LEFT JOIN arm a ON a.id = g.arm_id
ORDER BY g.id;

CREATE VIEW v_finding AS
SELECT f.run_id AS run, a.name AS arm, f.capability, f.ok, f.verdict, f.evidence
FROM finding f JOIN arm a ON a.id = f.arm_id
ORDER BY f.id;

CREATE VIEW v_event AS
SELECT at, run, arm, kind, detail FROM (
  SELECT e.at, e.run_id AS run, a.name AS arm, e.kind, e.detail, 1 AS source, e.id
  FROM event e LEFT JOIN arm a ON a.id = e.arm_id
  UNION ALL
  SELECT g.started_at, g.run_id, a.name, g.name,
         coalesce(g.outcome, 'did not end') || coalesce(': ' || g.detail, ''), 2, g.id
  FROM stage g LEFT JOIN arm a ON a.id = g.arm_id
  UNION ALL
  SELECT f.at, f.run, f.arm, CASE f.final WHEN 1 THEN 'failure' ELSE 'retry' END,
         coalesce(f.subset || ' ' || f.record_id, f.stage) || ': ' || f.class || ': ' || f.message, 3, 0
  FROM v_failure f)
ORDER BY at, run, source, id;

CREATE VIEW v_deviation AS
SELECT number, field, "from" AS registered, "to" AS done, why, at, sha256 FROM deviation ORDER BY number;

CREATE VIEW v_drift AS
SELECT 'subset' AS kind, s.name AS name, s.registered_sha256 AS registered, s.found_sha256 AS found,
       coalesce(s.problem, 'other bytes than registered') AS detail,
       (SELECT count(*) FROM prediction p JOIN prompt q ON q.id = p.prompt_id JOIN record r ON
        r.id = q.record_id WHERE r.subset_id = s.id) AS predictions
FROM subset s WHERE s.status = 'mismatch' AND s.in_plan = 1
UNION ALL
SELECT 'configuration', a.name,
       (SELECT n.sha256 FROM configuration n WHERE n.arm_id = a.id AND n.current = 1), c.sha256,
       'answers of other settings or another server: kept, not counted', count(p.id)
FROM configuration c JOIN arm a ON a.id = c.arm_id JOIN prediction p ON p.configuration_id = c.id
WHERE c.current = 0 GROUP BY c.id
UNION ALL
SELECT 'prompt', s.name, NULL, NULL, 'answers to another wording: kept, not counted', count(*)
FROM prompt q JOIN prediction p ON p.prompt_id = q.id JOIN record r ON r.id = q.record_id
JOIN subset s ON s.id = r.subset_id
WHERE q.current = 0 AND r.current = 1 GROUP BY s.id
UNION ALL
SELECT 'record', s.name, NULL, NULL, 'answers to records that the file no longer holds: kept, not counted',
       count(*)
FROM record r JOIN prompt q ON q.record_id = r.id JOIN prediction p ON p.prompt_id = q.id
JOIN subset s ON s.id = r.subset_id
WHERE r.current = 0 GROUP BY s.id;

-- Meaning of every view (column '*') and of its columns.
INSERT INTO dictionary (view, column, unit, meaning) VALUES
  ('dictionary', '*', '', 'this list, and a row for every column: unit and meaning'),
  ('dictionary', 'view', 'name', 'view that the column belongs to'),
  ('dictionary', 'column', 'name', 'column; *: the view itself'),
  ('dictionary', 'unit', 'text', 'unit, or what kind of value it is'),
  ('dictionary', 'meaning', 'text', 'meaning'),
  ('v_accuracy', '*', '', 'accuracy per arm and subset with interval, baseline and state: all arms, all subsets'),
  ('v_accuracy', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_accuracy', 'subset', 'name', 'subset of the plan'),
  ('v_accuracy', 'n_registered', 'records', 'records that the plan registered: the denominator'),
  ('v_accuracy', 'n_answered', 'records', 'records with an answer that counts; base variant, repeat 0, counted live'),
  ('v_accuracy', 'n_correct', 'records', 'answers that are the target'),
  ('v_accuracy', 'accuracy', 'share', 'n_correct / n_registered: an unanswered record counts as wrong. NULL: the arm never started, the subset is missing or mismatched, or the arm can read none of its questions'),
  ('v_accuracy', 'low', 'share', 'lower end of the 95 % interval over n_registered. NULL: not scored since the last answer'),
  ('v_accuracy', 'high', 'share', 'upper end of that interval'),
  ('v_accuracy', 'answered_only', 'share', 'n_correct / n_answered'),
  ('v_accuracy', 'baseline', 'share', 'share of the most frequent target: what always giving the same answer would reach'),
  ('v_accuracy', 'baseline_key', 'name', 'that target'),
  ('v_accuracy', 'method', 'name', 'how the interval was computed'),
  ('v_accuracy', 'state', 'text', 'complete, incomplete, no answer, or why nothing was measured'),
  ('v_accuracy', 'type', 'name', 'question type: noul (yes or no), choice, score'),
  ('v_accuracy', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_accuracy', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_unreadable', '*', '', 'questions with more options than an arm can read: an arm that reads by token is not asked them'),
  ('v_unreadable', 'arm', 'name', 'arm that reads by token'),
  ('v_unreadable', 'subset', 'name', 'subset of the plan, verified'),
  ('v_unreadable', 'n', 'records', 'its questions that this arm cannot read'),
  ('v_unreadable', 'n_registered', 'records', 'records that the plan registered'),
  ('v_unreadable', 'reason', 'text', 'the same in words'),
  ('v_unreadable', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_agreement', '*', '', 'how often two arms give the same answer (as of the last scoring)'),
  ('v_agreement', 'arm_a', 'name', 'first arm, in the order of the plan'),
  ('v_agreement', 'arm_b', 'name', 'second arm'),
  ('v_agreement', 'subset', 'name', 'subset, or all, noul, choice, score where scope_kind is pooled'),
  ('v_agreement', 'n', 'records', 'records answered on both arms'),
  ('v_agreement', 'same', 'records', 'same predicted option'),
  ('v_agreement', 'share', 'share', 'same / n'),
  ('v_agreement', 'low', 'share', 'one-sided lower bound; NULL: not computed'),
  ('v_agreement', 'same_checkpoint', '0 or 1', '1: one checkpoint on two backends; 0: different checkpoints'),
  ('v_agreement', 'scope_kind', 'name', 'subset or pooled'),
  ('v_agreement', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_agreement', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_disagreement', '*', '', 'records on which two arms give different answers'),
  ('v_disagreement', 'arm_a', 'name', 'first arm, in the order of the plan'),
  ('v_disagreement', 'arm_b', 'name', 'second arm'),
  ('v_disagreement', 'subset', 'name', 'subset of the plan'),
  ('v_disagreement', 'record_id', 'name', 'id of the record in its file'),
  ('v_disagreement', 'predicted_a', 'name', 'option that the first arm gives'),
  ('v_disagreement', 'predicted_b', 'name', 'option that the second arm gives'),
  ('v_disagreement', 'target', 'name', 'right option'),
  ('v_disagreement', 'correct_a', '0 or 1', 'the first arm is right'),
  ('v_disagreement', 'correct_b', '0 or 1', 'the second arm is right'),
  ('v_disagreement', 'same_checkpoint', '0 or 1', '1: one checkpoint on two backends; 0: different checkpoints'),
  ('v_disagreement', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_calibration', '*', '', 'calibration per arm and subset, over answered reads (as of the last scoring)'),
  ('v_calibration', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_calibration', 'subset', 'name', 'subset of the plan'),
  ('v_calibration', 'bins', 'number', 'bins of the ECE'),
  ('v_calibration', 'spacing', 'name', 'equal width'),
  ('v_calibration', 'edges', 'name', 'left-closed: a value on an edge belongs to the bin above; right-closed: below'),
  ('v_calibration', 'ece', 'probability', 'expected calibration error: mean distance of confidence and accuracy over the bins'),
  ('v_calibration', 'floor_mean', 'probability', 'mean ECE of a perfectly calibrated model with these confidences; NULL: not computed'),
  ('v_calibration', 'floor_95', 'probability', '95th percentile of the same; NULL: not computed'),
  ('v_calibration', 'brier', 'squared probability', 'mean over records of the squared distances to the target, summed over options (0 to 2)'),
  ('v_calibration', 'nll', 'nats', 'mean negative log-probability of the target'),
  ('v_calibration', 'ece_after_50', 'probability', 'ECE on held-out halves after a temperature fitted on 50 labels, mean over the splits; NULL: fewer than 100 answers'),
  ('v_calibration', 'n', 'records', 'answered records'),
  ('v_calibration', 'nll_clip', 'probability', 'least probability that nll takes a logarithm of'),
  ('v_calibration', 'labels', 'number', 'labels that each temperature was fitted on'),
  ('v_calibration', 'splits', 'number', 'splits behind ece_after_50'),
  ('v_calibration', 'temperature_low', 'number', 'least fitted temperature over the splits'),
  ('v_calibration', 'temperature_high', 'number', 'largest fitted temperature over the splits'),
  ('v_calibration', 'at_edge', 'number', 'splits whose temperature lies at an end of the grid: the true one may lie beyond'),
  ('v_calibration', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_calibration', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_calibration_bins', '*', '', 'the bins of a reliability diagram (as of the last scoring)'),
  ('v_calibration_bins', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_calibration_bins', 'subset', 'name', 'subset of the plan'),
  ('v_calibration_bins', 'bins', 'number', 'number of bins'),
  ('v_calibration_bins', 'bin', 'number', '0-based'),
  ('v_calibration_bins', 'low', 'probability', 'lower edge'),
  ('v_calibration_bins', 'high', 'probability', 'upper edge'),
  ('v_calibration_bins', 'n', 'records', 'answers whose confidence falls into it'),
  ('v_calibration_bins', 'confidence', 'probability', 'their mean confidence; NULL: empty bin'),
  ('v_calibration_bins', 'accuracy', 'share', 'share of them that are right; NULL: empty bin'),
  ('v_calibration_bins', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_bounds', '*', '', 'top-k reads: calibration with every absent label at its bound, and at nothing; labels that came stay as they came (as of the last scoring)'),
  ('v_bounds', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_bounds', 'subset', 'name', 'subset of the plan'),
  ('v_bounds', 'n', 'records', 'answered records'),
  ('v_bounds', 'n_incomplete', 'records', 'answers that lack at least one label'),
  ('v_bounds', 'n_tied_at_bound', 'records', 'answers where what is absent could make another label as likely as the chosen one, or likelier'),
  ('v_bounds', 'confidence', 'probability', 'mean probability of the chosen label as scored: absent labels at the floor'),
  ('v_bounds', 'confidence_at_bound', 'probability', 'the same with every absent label at its bound'),
  ('v_bounds', 'confidence_at_nothing', 'probability', 'the same with every absent label at probability 0'),
  ('v_bounds', 'confidence_low', 'probability', 'the lesser of the two; whatever the absent labels were, it is not less'),
  ('v_bounds', 'confidence_high', 'probability', 'the greater of the two; whatever the absent labels were, it is not more'),
  ('v_bounds', 'ece', 'probability', 'expected calibration error as scored: absent labels at the floor'),
  ('v_bounds', 'ece_at_bound', 'probability', 'the same with every absent label at its bound; the choice stays'),
  ('v_bounds', 'ece_at_nothing', 'probability', 'the same with every absent label at probability 0'),
  ('v_bounds', 'ece_low', 'probability', 'the lesser of the two'),
  ('v_bounds', 'ece_high', 'probability', 'the greater of the two'),
  ('v_bounds', 'brier', 'squared probability', 'Brier score as scored: absent labels at the floor'),
  ('v_bounds', 'brier_at_bound', 'squared probability', 'the same with every absent label at its bound; the choice stays'),
  ('v_bounds', 'brier_at_nothing', 'squared probability', 'the same with every absent label at probability 0'),
  ('v_bounds', 'brier_low', 'squared probability', 'the lesser of the two'),
  ('v_bounds', 'brier_high', 'squared probability', 'the greater of the two'),
  ('v_bounds', 'nll', 'nats', 'mean negative log-probability of the target as scored: absent labels at the floor'),
  ('v_bounds', 'nll_at_bound', 'nats', 'the same with every absent label at its bound; the choice stays'),
  ('v_bounds', 'nll_at_nothing', 'nats', 'the same with every absent label at probability 0; -ln nll_clip for a target that is absent'),
  ('v_bounds', 'nll_low', 'nats', 'the lesser of the two'),
  ('v_bounds', 'nll_high', 'nats', 'the greater of the two'),
  ('v_bounds', 'bins', 'number', 'bins of the ECE'),
  ('v_bounds', 'edges', 'name', 'left-closed: a value on an edge belongs to the bin above; right-closed: below'),
  ('v_bounds', 'nll_clip', 'probability', 'least probability that nll takes a logarithm of'),
  ('v_bounds', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_published_vs_ours', '*', '', 'published figures beside ours, unpaired; figures only where the records are byte-identical'),
  ('v_published_vs_ours', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_published_vs_ours', 'subset', 'name', 'subset, or all, noul, choice, score where scope_kind is pooled'),
  ('v_published_vs_ours', 'published_accuracy', 'share', 'as published; pooled: from the counts of the comparable subsets'),
  ('v_published_vs_ours', 'accuracy', 'share', 'ours; NULL: not comparable'),
  ('v_published_vs_ours', 'difference', 'share', 'published minus ours; NULL: not comparable'),
  ('v_published_vs_ours', 'low', 'share', 'lower end of its unpaired 95 % interval'),
  ('v_published_vs_ours', 'high', 'share', 'upper end'),
  ('v_published_vs_ours', 'published_ece', 'probability', 'as published; NULL for pooled groups'),
  ('v_published_vs_ours', 'ece', 'probability', 'ours, as shipped'),
  ('v_published_vs_ours', 'comparable', '0 or 1', '1: read on byte-identical records'),
  ('v_published_vs_ours', 'why_not', 'text', 'why they are not comparable'),
  ('v_published_vs_ours', 'published_n', 'records', 'records behind the published figure'),
  ('v_published_vs_ours', 'n', 'records', 'records behind ours'),
  ('v_published_vs_ours', 'n_subsets', 'number', 'comparable subsets in it'),
  ('v_published_vs_ours', 'of_subsets', 'number', 'published subsets in it'),
  ('v_published_vs_ours', 'scope_kind', 'name', 'subset or pooled'),
  ('v_published_vs_ours', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_published_vs_ours', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_completeness', '*', '', 'what was answered, given up and never asked, per arm, subset, variant and repeat'),
  ('v_completeness', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_completeness', 'subset', 'name', 'subset of the plan'),
  ('v_completeness', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_completeness', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_completeness', 'n_registered', 'records', 'records that the plan registered'),
  ('v_completeness', 'n_answered', 'records', 'records with an answer that counts'),
  ('v_completeness', 'n_failed', 'records', 'records that were given up and have no answer'),
  ('v_completeness', 'n_unreadable', 'records', 'with more options than this arm can read: never asked, and wrong in the accuracy. NULL: the arm or the subset was not run'),
  ('v_completeness', 'n_not_asked', 'records', 'neither answered nor given up, though the arm can read them: a resumed run asks them. NULL: the arm or the subset was not run'),
  ('v_completeness', 'state', 'text', 'complete, incomplete, or why nothing was measured'),
  ('v_completeness', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_latency', '*', '', 'time per answer, base variant, repeat 0'),
  ('v_latency', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_latency', 'subset', 'name', 'subset of the plan'),
  ('v_latency', 'n', 'answers', 'answers with a time'),
  ('v_latency', 'mean_ms', 'ms', 'mean'),
  ('v_latency', 'median_ms', 'ms', 'median'),
  ('v_latency', 'p90_ms', 'ms', 'value number floor(0.9 n) in ascending order'),
  ('v_latency', 'p99_ms', 'ms', 'value number floor(0.99 n)'),
  ('v_latency', 'min_ms', 'ms', 'least'),
  ('v_latency', 'max_ms', 'ms', 'largest'),
  ('v_latency', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_prediction', '*', '', 'one row per answer that counts'),
  ('v_prediction', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_prediction', 'subset', 'name', 'subset of the plan'),
  ('v_prediction', 'record_id', 'name', 'id of the record in its file'),
  ('v_prediction', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_prediction', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_prediction', 'predicted', 'name', 'option with the largest probability, the first of equal ones'),
  ('v_prediction', 'target', 'name', 'right option'),
  ('v_prediction', 'correct', '0 or 1', 'predicted is the target'),
  ('v_prediction', 'label_mass', 'probability', 'sum of the label probabilities before rescaling; above 1 by rounding only'),
  ('v_prediction', 'labels_returned', 'number', 'how many labels the server returned; NULL: unknown'),
  ('v_prediction', 'n_labels', 'number', 'how many labels the question has'),
  ('v_prediction', 'tied', '0 or 1', 'another label has the same probability'),
  ('v_prediction', 'read', 'name', 'exact, top-k, text-top-k or native'),
  ('v_prediction', 'latency_ms', 'ms', 'time of the answer, summed over its requests'),
  ('v_prediction', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_prediction', 'type', 'name', 'question type: noul (yes or no), choice, score'),
  ('v_prediction', 'family', 'name', 'records of one family share material and are not independent'),
  ('v_prediction', 'record_position', 'number', '0-based line of the record in its file'),
  ('v_prediction', 'confidence', 'probability', 'largest label probability'),
  ('v_prediction', 'entropy', 'nats', 'over the returned log-probabilities; not comparable across read modes'),
  ('v_prediction', 'argmax_is_label', '0 or 1', 'the most probable token of all is a label'),
  ('v_prediction', 'tied_at_bound', '0 or 1', 'what is absent (labels, or spellings of labels) could make another label as likely as the predicted one'),
  ('v_prediction', 'floor', 'nats', 'log-probability given to labels outside the k best'),
  ('v_prediction', 'bound', 'nats', 'upper bound of the log-probability of absent labels: the least returned one, more where absent labels have several spellings'),
  ('v_prediction', 'prompt_tokens', 'tokens', 'length of the prompt'),
  ('v_prediction', 'requests', 'number', 'HTTP exchanges that the answer took'),
  ('v_prediction', 'exploratory', '0 or 1', '1: from an exploratory run'),
  ('v_prediction', 'run', 'number', 'run in which it happened (v_run)'),
  ('v_prediction', 'printed_sum', 'probability', 'native reads: sum of the probabilities as the server printed them'),
  ('v_prediction', 'sum_is_off', '0 or 1', 'native reads: the printed sum differs from 1 by more than 0.05'),
  ('v_prediction', 'choice_differs', '0 or 1', 'native reads: the named choice is more than 0.01 below the largest printed number'),
  ('v_prediction', 'value', 'level', 'native reads: a score that came as an expected level, counted from 0; it has no labels'),
  ('v_prediction', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_native', '*', '', 'native reads per arm and subset: what their replies are remarkable for'),
  ('v_native', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_native', 'subset', 'name', 'subset of the plan'),
  ('v_native', 'n_answered', 'number', 'answers, base variant, repeat 0'),
  ('v_native', 'n_sum_is_off', 'number', 'answers whose printed sum differs from 1 by more than 0.05'),
  ('v_native', 'n_choice_differs', 'number', 'answers whose named choice is not the largest printed number'),
  ('v_native', 'n_values', 'number', 'scores that came as an expected level'),
  ('v_native', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_label_mass', '*', '', 'quantiles of the label mass per arm and subset: observed values, base variant, repeat 0'),
  ('v_label_mass', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_label_mass', 'subset', 'name', 'subset of the plan'),
  ('v_label_mass', 'n', 'number', 'answers with a label mass'),
  ('v_label_mass', 'least', 'probability', 'the least one'),
  ('v_label_mass', 'p05', 'probability', 'of 100, 5 are less'),
  ('v_label_mass', 'p25', 'probability', 'lower quartile'),
  ('v_label_mass', 'median', 'probability', 'upper median'),
  ('v_label_mass', 'p75', 'probability', 'upper quartile'),
  ('v_label_mass', 'largest', 'probability', 'the largest one'),
  ('v_label_mass', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_label', '*', '', 'one row per label of every answer that counts'),
  ('v_label', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_label', 'subset', 'name', 'subset of the plan'),
  ('v_label', 'record_id', 'name', 'id of the record in its file'),
  ('v_label', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_label', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_label', 'position', 'number', '0-based, as presented to the model'),
  ('v_label', 'key', 'name', 'option that the label stands for'),
  ('v_label', 'logprob', 'nats', 'natural logarithm of the token probability'),
  ('v_label', 'probability', 'probability', 'softmax over the labels alone'),
  ('v_label', 'source', 'name', 'exact, top, floor (outside the k best), text, native or imported'),
  ('v_label', 'option', 'number', '0-based, in the order of the record'),
  ('v_label', 'is_target', '0 or 1', 'the option is the target'),
  ('v_label', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_label', 'simulated', '0 or 1', '1: no model answered (preval rehearse)'),
  ('v_evidence', '*', '', 'keys of the answers that count, for joins with the tables; v_prediction has the names'),
  ('v_evidence', 'prediction_id', 'key', 'prediction.id'),
  ('v_evidence', 'arm_id', 'key', 'arm.id'),
  ('v_evidence', 'subset_id', 'key', 'subset.id'),
  ('v_evidence', 'record_key', 'key', 'record.id'),
  ('v_evidence', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_evidence', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_evidence', 'predicted', 'number', 'option position'),
  ('v_evidence', 'target', 'number', 'option position'),
  ('v_evidence', 'correct', '0 or 1', 'predicted is the target'),
  ('v_exploratory', '*', '', 'answers of exploratory runs, and whether they are what scores and views count'),
  ('v_exploratory', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_exploratory', 'subset', 'name', 'subset of the plan'),
  ('v_exploratory', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_exploratory', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_exploratory', 'n_answered', 'records', 'exploratory answers'),
  ('v_exploratory', 'n_correct', 'records', 'of which right'),
  ('v_exploratory', 'counted', '0 or 1', '1: the store has no registered run, so these are shown everywhere, marked; 0: set aside'),
  ('v_exploratory', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_exploratory', 'configuration', 'number', 'which settings and server: configuration.id'),
  ('v_unconfirmed', '*', '', 'answers of runs that ended before the server had said once more who it is (servers that preval did not start)'),
  ('v_unconfirmed', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_unconfirmed', 'run', 'number', 'the run (v_run)'),
  ('v_unconfirmed', 'n_answered', 'records', 'its answers that count'),
  ('v_failure', '*', '', 'every attempt that gave no answer'),
  ('v_failure', 'at', 'UTC', 'when'),
  ('v_failure', 'run', 'number', 'run in which it happened (v_run)'),
  ('v_failure', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_failure', 'subset', 'name', 'subset of the plan; NULL, as record_id, variant and repeat are: no read'),
  ('v_failure', 'record_id', 'name', 'id of the record in its file'),
  ('v_failure', 'variant', 'name', 'none (as written) or reversed (alternatives in reverse)'),
  ('v_failure', 'repeat', 'number', '0 for the first answer; scores use repeat 0'),
  ('v_failure', 'attempt', 'number', '1, 2, … of the record'),
  ('v_failure', 'final', '0 or 1', '1: given up in this run'),
  ('v_failure', 'class', 'name', 'what went wrong'),
  ('v_failure', 'http_status', 'number', 'HTTP status; NULL: none came'),
  ('v_failure', 'message', 'text', 'what went wrong, in words'),
  ('v_failure', 'body_sha256', 'digest', 'SHA-256 of what was received'),
  ('v_failure', 'body_head', 'text', 'its first 500 bytes'),
  ('v_failure', 'dataset', 'name', 'group of the plan that the subset belongs to'),
  ('v_failure', 'stage', 'name', 'read, or what else the server was asked for: boot, identity, preflight'),
  ('v_run', '*', '', 'calls of preval run and rehearse'),
  ('v_run', 'run', 'number', 'number of the run'),
  ('v_run', 'started_at', 'UTC', 'start'),
  ('v_run', 'ended_at', 'UTC', 'end; NULL: under way, or killed'),
  ('v_run', 'outcome', 'name', 'complete, incomplete, drift, backend, interrupted, failed or killed'),
  ('v_run', 'exit_code', 'number', 'exit code'),
  ('v_run', 'exploratory', '0 or 1', '1: --exploratory'),
  ('v_run', 'record_limit', 'records', '--limit; NULL: none'),
  ('v_run', 'command', 'text', 'what was called, folders left out'),
  ('v_run', 'tool_version', 'text', 'version of preval'),
  ('v_run', 'git_commit', 'digest', 'commit that preval was built from'),
  ('v_run', 'host', 'text', 'processor, cores, operating system'),
  ('v_run', 'plan_sha256', 'digest', 'of the plan'),
  ('v_run', 'effective_sha256', 'digest', 'of the plan with its deviations'),
  ('v_run', 'ledger_head', 'digest', 'of the last deviation'),
  ('v_stage', '*', '', 'stages of runs: verify, checkpoint, boot, preflight, smoke, reads, stop'),
  ('v_stage', 'run', 'number', 'run in which it happened (v_run)'),
  ('v_stage', 'arm', 'name', 'arm; NULL: of the whole run'),
  ('v_stage', 'stage', 'name', 'stage'),
  ('v_stage', 'started_at', 'UTC', 'start'),
  ('v_stage', 'ended_at', 'UTC', 'end; NULL: under way, or killed'),
  ('v_stage', 'seconds', 's', 'duration'),
  ('v_stage', 'outcome', 'name', 'ok, failed or interrupted'),
  ('v_stage', 'detail', 'text', 'what came of it'),
  ('v_finding', '*', '', 'what preflight tried on a server, and what came of it'),
  ('v_finding', 'run', 'number', 'run in which it happened (v_run)'),
  ('v_finding', 'arm', 'name', 'arm: a checkpoint on a backend'),
  ('v_finding', 'capability', 'name', 'what was tried'),
  ('v_finding', 'ok', '0 or 1', 'as the plan needs it'),
  ('v_finding', 'verdict', 'text', 'what came of it'),
  ('v_finding', 'evidence', 'text', 'what it was seen from'),
  ('v_event', '*', '', 'what happened when: boots and other stages, retries, failures, resumes, warnings'),
  ('v_event', 'at', 'UTC', 'when'),
  ('v_event', 'run', 'number', 'run in which it happened (v_run)'),
  ('v_event', 'arm', 'name', 'arm; NULL: of the whole run'),
  ('v_event', 'kind', 'name', 'resume, retry, failure, skipped, dropped, warning, or the name of a stage'),
  ('v_event', 'detail', 'text', 'in words'),
  ('v_deviation', '*', '', 'what had to differ from the locked plan'),
  ('v_deviation', 'number', 'number', '1, 2, …'),
  ('v_deviation', 'field', 'JSON pointer', 'place in the plan'),
  ('v_deviation', 'registered', 'JSON', 'value that the plan, with the deviations before, has'),
  ('v_deviation', 'done', 'JSON', 'value since then'),
  ('v_deviation', 'why', 'text', 'reason'),
  ('v_deviation', 'at', 'UTC', 'when'),
  ('v_deviation', 'sha256', 'digest', 'of the entry, chained to the one before'),
  ('v_drift', '*', '', 'what is not, or no longer, what was registered'),
  ('v_drift', 'kind', 'name', 'subset, configuration, prompt or record'),
  ('v_drift', 'name', 'name', 'of the subset or arm'),
  ('v_drift', 'registered', 'digest', 'what counts'),
  ('v_drift', 'found', 'digest', 'what was found'),
  ('v_drift', 'detail', 'text', 'in words'),
  ('v_drift', 'predictions', 'answers', 'answers that are kept but do not count');
