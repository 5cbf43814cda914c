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

CREATE VIEW v_stability AS
WITH again AS (
  SELECT e.*, CASE WHEN e.repeat > 0 THEN e.variant ELSE 'none' END AS against
  FROM v_evidence e WHERE e.variant <> 'none' OR e.repeat > 0),
first AS MATERIALIZED (
  SELECT arm_id, record_key, variant, prediction_id, predicted FROM v_evidence WHERE repeat = 0)
SELECT a.name AS arm, s.name AS subset, x.variant, x.repeat, count(*) AS n,
       sum(x.predicted = y.predicted) AS same,
       sum(x.predicted = y.predicted) * 1.0 / count(*) AS share,
       max((SELECT max(abs(l.probability - m.probability))
            FROM label l JOIN label m ON m.prediction_id = y.prediction_id AND m.option = l.option
            WHERE l.prediction_id = x.prediction_id)) AS largest_step,
       s.dataset
FROM again x
JOIN first y ON y.arm_id = x.arm_id AND y.record_key = x.record_key AND y.variant = x.against
JOIN arm a ON a.id = x.arm_id
JOIN subset s ON s.id = x.subset_id
GROUP BY a.id, s.id, x.variant, x.repeat
ORDER BY a.position, s.position, x.variant, x.repeat;

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
       u.command, u.shard, u.shards
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
SELECT 'arm', a.name, NULL, NULL, a.reason, 0
FROM arm a
WHERE a.in_plan = 1 AND a.status = 'failed'
  AND 'drift' = (SELECT e.kind FROM event e WHERE e.arm_id = a.id AND e.kind IN ('failed', 'drift')
                 ORDER BY e.id DESC LIMIT 1)
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
