-- 1. The groups: how many executions, and how long they take.
WITH members AS (
  SELECT 'slow' AS side, duration_ns, weight FROM executions WHERE {slow}
  UNION ALL
  SELECT 'fast' AS side, duration_ns, weight FROM executions WHERE {fast}
)
SELECT side,
       sum(weight) AS executions,
       sum(CAST(duration_ns AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(7, 0))) AS sum_ns,
       CAST(sum(CAST(duration_ns AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(7, 0))) AS DOUBLE)
         / sum(weight) AS mean_ns,
       min(duration_ns) AS min_ns,
       max(duration_ns) AS max_ns
FROM members
GROUP BY side
ORDER BY side DESC;

-- 2. The histogram: executions by duration.
WITH bins AS (
  {bins}
),
members AS (
  SELECT 'slow' AS side, duration_ns, weight FROM executions WHERE {slow}
  UNION ALL
  SELECT 'fast' AS side, duration_ns, weight FROM executions WHERE {fast}
)
SELECT bins.bin AS bin,
       bins.from_ns AS from_ns,
       bins.to_ns AS to_ns,
       sum(CASE WHEN members.side = 'slow' THEN members.weight ELSE 0 END) AS slow,
       sum(CASE WHEN members.side = 'fast' THEN members.weight ELSE 0 END) AS fast
FROM members CROSS JOIN bins
WHERE members.duration_ns >= bins.from_ns AND members.duration_ns < bins.to_ns
GROUP BY bins.bin, bins.from_ns, bins.to_ns
ORDER BY bin;

-- 3. The differential tree: per context the time of both groups in it and below, the largest differences first.
WITH members AS (
  SELECT 'slow' AS side, part, execution, weight FROM executions WHERE {slow}
  UNION ALL
  SELECT 'fast' AS side, part, execution, weight FROM executions WHERE {fast}
),
sizes AS (
  SELECT sum(CASE WHEN side = 'slow' THEN weight ELSE 0 END) AS slow,
         sum(CASE WHEN side = 'fast' THEN weight ELSE 0 END) AS fast
  FROM members
),
own AS (
  SELECT members.side AS side, spent.part AS part, spent.context AS context,
         sum(CAST(spent.spent_ns AS DECIMAL(19, 0)) * CAST(members.weight AS DECIMAL(7, 0))) AS own_ns
  FROM members JOIN spent ON spent.part = members.part AND spent.execution = members.execution
  GROUP BY members.side, spent.part, spent.context
),
below AS (
  SELECT contexts.path_key AS path_key,
         sum(CASE WHEN own.side = 'slow' THEN own.own_ns ELSE CAST(0 AS DECIMAL(38, 0)) END) AS slow_ns,
         sum(CASE WHEN own.side = 'fast' THEN own.own_ns ELSE CAST(0 AS DECIMAL(38, 0)) END) AS fast_ns
  FROM own
  JOIN paths ON paths.part = own.part AND paths.context = own.context
  JOIN contexts ON contexts.part = paths.part AND contexts.context = paths.above
  GROUP BY contexts.path_key
),
named AS (
  SELECT path_key, min(path) AS path, min(frame) AS frame, min(kind) AS kind, min(depth) AS depth
  FROM contexts
  GROUP BY path_key
)
SELECT named.path_key AS path_key,
       named.path AS path,
       named.frame AS frame,
       named.kind AS kind,
       named.depth AS depth,
       below.slow_ns AS slow_sum_ns,
       below.fast_ns AS fast_sum_ns,
       CAST(below.slow_ns AS DOUBLE) / nullif(sizes.slow, 0) AS slow_mean_ns,
       CAST(below.fast_ns AS DOUBLE) / nullif(sizes.fast, 0) AS fast_mean_ns,
       CAST(below.slow_ns AS DOUBLE) / nullif(sizes.slow, 0)
         - CAST(below.fast_ns AS DOUBLE) / nullif(sizes.fast, 0) AS delta_ns
FROM below JOIN named ON named.path_key = below.path_key CROSS JOIN sizes
WHERE below.slow_ns > 0 OR below.fast_ns > 0
ORDER BY abs(CAST(below.slow_ns AS DOUBLE) / nullif(sizes.slow, 0)
         - CAST(below.fast_ns AS DOUBLE) / nullif(sizes.fast, 0)) DESC, path, path_key;

-- 4. The causes: the own time of the contexts that whyslow has put into each, the largest first.
WITH causes AS (
  {causes}
),
members AS (
  SELECT 'slow' AS side, part, execution, weight FROM executions WHERE {slow}
  UNION ALL
  SELECT 'fast' AS side, part, execution, weight FROM executions WHERE {fast}
),
sizes AS (
  SELECT sum(CASE WHEN side = 'slow' THEN weight ELSE 0 END) AS slow,
         sum(CASE WHEN side = 'fast' THEN weight ELSE 0 END) AS fast
  FROM members
),
own AS (
  SELECT members.side AS side, spent.part AS part, spent.context AS context,
         sum(CAST(spent.spent_ns AS DECIMAL(19, 0)) * CAST(members.weight AS DECIMAL(7, 0))) AS own_ns
  FROM members JOIN spent ON spent.part = members.part AND spent.execution = members.execution
  GROUP BY members.side, spent.part, spent.context
),
of_cause AS (
  SELECT coalesce(causes.cause, 0) AS cause, own.side AS side, sum(own.own_ns) AS own_ns
  FROM own
  JOIN contexts ON contexts.part = own.part AND contexts.context = own.context
  LEFT JOIN causes ON causes.path_key = contexts.path_key
  GROUP BY coalesce(causes.cause, 0), own.side
),
sums AS (
  SELECT cause,
         sum(CASE WHEN side = 'slow' THEN own_ns ELSE CAST(0 AS DECIMAL(38, 0)) END) AS slow_ns,
         sum(CASE WHEN side = 'fast' THEN own_ns ELSE CAST(0 AS DECIMAL(38, 0)) END) AS fast_ns
  FROM of_cause
  GROUP BY cause
)
SELECT sums.cause AS cause,
       sums.slow_ns AS slow_sum_ns,
       sums.fast_ns AS fast_sum_ns,
       CAST(sums.slow_ns AS DOUBLE) / nullif(sizes.slow, 0)
         - CAST(sums.fast_ns AS DOUBLE) / nullif(sizes.fast, 0) AS extra_ns
FROM sums CROSS JOIN sizes
ORDER BY CASE WHEN sums.cause = 0 THEN 1 ELSE 0 END, sums.cause;

-- 5. The trend: executions, mean duration, and how many are slow, by day.
SELECT day,
       sum(weight) AS executions,
       sum(CAST(duration_ns AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(7, 0))) AS sum_ns,
       CAST(sum(CAST(duration_ns AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(7, 0))) AS DOUBLE)
         / sum(weight) AS mean_ns,
       sum(CASE WHEN {slow} THEN weight ELSE 0 END) AS slow
FROM executions
WHERE {task}
GROUP BY day
ORDER BY day;
