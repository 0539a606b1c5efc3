-- Queries whose rewritten trees are compared with DuckDB's own evaluation, one in a line.
-- Where DuckDB cannot evaluate a text (or takes rows as values in which NULL equals NULL), the text after ==> says the
-- same by other means.

-- exists
SELECT id, a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
SELECT id, a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b > t.b)
SELECT id, a FROM t WHERE EXISTS (SELECT t.b FROM u WHERE u.a < t.a)
SELECT id, a FROM t WHERE EXISTS (SELECT t.b FROM u)
SELECT id, a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.b IS NULL)
SELECT id FROM t WHERE EXISTS (SELECT DISTINCT u.b FROM u WHERE u.a < t.a)
SELECT id FROM t WHERE EXISTS (SELECT u.b, count(*) FROM u WHERE u.a = t.a GROUP BY u.b HAVING count(*) > 1)
SELECT id FROM t WHERE EXISTS (SELECT u.b, count(*) FROM u WHERE u.a < t.a GROUP BY u.b HAVING count(*) > 1)
SELECT id FROM t WHERE EXISTS (SELECT u.b, count(*) FROM u GROUP BY u.b HAVING count(*) > t.a)
SELECT id FROM t WHERE EXISTS (SELECT max(u.b) FROM u WHERE u.a = t.a)
SELECT id FROM t WHERE NOT EXISTS (SELECT max(u.b) FROM u WHERE u.a = t.a)
SELECT id FROM t WHERE EXISTS (SELECT max(u.b) FROM u WHERE u.a = t.a HAVING count(*) > 1)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u JOIN v ON u.a = v.a AND v.b = t.b WHERE u.id = t.id)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u LEFT JOIN v ON u.a = v.a AND v.b = t.b WHERE v.id IS NULL) ==> SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u LEFT JOIN LATERAL (SELECT * FROM v WHERE u.a = v.a AND v.b = t.b) w ON TRUE WHERE w.id IS NULL)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM v WHERE v.a = u.b AND v.b = t.b))
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.a = u.b AND v.b = t.b))
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND NOT EXISTS (SELECT 1 FROM v WHERE v.a = u.b AND v.b > t.b))
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a))
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a UNION ALL SELECT 1 FROM v WHERE v.b = t.b)
SELECT id FROM t WHERE NOT EXISTS (SELECT u.b FROM u WHERE u.a = t.a INTERSECT SELECT v.b FROM v WHERE v.b = t.b)
SELECT id FROM t WHERE EXISTS (SELECT u.b FROM u EXCEPT SELECT v.b FROM v WHERE v.a = t.a)
SELECT id FROM t WHERE t.a > 1 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND NOT EXISTS (SELECT 1 FROM v WHERE v.a = t.a)
SELECT x.id FROM (SELECT id, a + 1 AS c FROM t) x WHERE EXISTS (SELECT 1 FROM u WHERE u.a = x.c)
SELECT t.id, w.b FROM t JOIN v w ON t.a = w.a WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b = w.b)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a + t.a = 4)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a OR u.b = t.b)

-- in
SELECT id, a FROM t WHERE a IN (SELECT a FROM u)
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u)
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.b < t.b)
SELECT id, a FROM t WHERE a + 1 NOT IN (SELECT a + b FROM u WHERE u.b = t.b + 1)
SELECT id, a FROM t WHERE a IN (SELECT u.a + t.b FROM u)
SELECT id, a FROM t WHERE a NOT IN (SELECT u.a + t.b FROM u)
SELECT id, a FROM t WHERE (a, b) IN (SELECT a, b FROM u)
SELECT id, a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u) ==> SELECT id, a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE coalesce(t.a = u.a AND t.b = u.b, TRUE))
SELECT id, a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u WHERE u.id = t.id) ==> SELECT id, a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND coalesce(t.a = u.a AND t.b = u.b, TRUE))
SELECT id, a FROM t WHERE a IN (SELECT max(a) FROM u GROUP BY b)
SELECT id, a FROM t WHERE a IN (SELECT max(a) FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE a NOT IN (SELECT max(a) FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE a IN (SELECT a FROM u WHERE u.b = t.b ORDER BY u.id, u.a LIMIT 1)
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.b = t.b ORDER BY u.id, u.a LIMIT 2 OFFSET 1)
SELECT id, a FROM t WHERE 1 NOT IN (SELECT a FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE a > ALL (SELECT a FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE a > ANY (SELECT a FROM u WHERE u.b = t.b)
SELECT id, a FROM t WHERE NOT a > ALL (SELECT a FROM u)
SELECT id, a FROM t WHERE NOT a <= ANY (SELECT a FROM u)
SELECT id, a FROM t WHERE a IN (SELECT a FROM u WHERE b IN (SELECT b FROM v WHERE v.a = t.a))
SELECT id, a FROM t WHERE a NOT IN (SELECT a FROM u WHERE b NOT IN (SELECT b FROM v WHERE v.a = u.a))
SELECT a, count(*) AS n FROM t GROUP BY a HAVING a IN (SELECT b FROM u)
SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) NOT IN (SELECT b FROM u WHERE u.a = t.a)

-- marks
SELECT id, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS e FROM t
SELECT id, EXISTS (SELECT 1 FROM u WHERE u.a < t.a) AS e FROM t
SELECT id, EXISTS (SELECT 1 FROM u) AS e, NOT EXISTS (SELECT 1 FROM v WHERE a = 9) AS n FROM t
SELECT id, a IN (SELECT a FROM u) AS e FROM t
SELECT id, a NOT IN (SELECT a FROM u) AS e FROM t
SELECT id, a IN (SELECT a FROM u WHERE u.b = t.b) AS e FROM t
SELECT id, a IN (SELECT a FROM u WHERE u.b < t.b) AS e FROM t
SELECT id, (a, b) IN (SELECT a, b FROM u) AS e FROM t ==> SELECT id, (SELECT CASE WHEN bool_or(t.a = u.a AND t.b = u.b) THEN TRUE WHEN count(*) > count(t.a = u.a AND t.b = u.b) THEN NULL ELSE FALSE END FROM u) AS e FROM t
SELECT id, (a, b) NOT IN (SELECT a, b FROM u WHERE u.id = t.id) AS e FROM t ==> SELECT id, NOT (SELECT CASE WHEN bool_or(t.a = u.a AND t.b = u.b) THEN TRUE WHEN count(*) > count(t.a = u.a AND t.b = u.b) THEN NULL ELSE FALSE END FROM u WHERE u.id = t.id) AS e FROM t
SELECT id, a IN (SELECT u.a + t.b FROM u WHERE u.id = t.id) AS e FROM t
SELECT id, a > ALL (SELECT a FROM u WHERE u.b = t.b) AS e, a < ANY (SELECT b FROM v) AS f FROM t
SELECT id, a IN (SELECT max(a) FROM u WHERE u.b = t.b) AS e FROM t
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) OR EXISTS (SELECT 1 FROM v WHERE v.a = t.a) OR a IS NULL
SELECT id FROM t WHERE a IN (SELECT a FROM u) OR b IN (SELECT b FROM v) OR b > 2
SELECT id FROM t WHERE NOT (a IN (SELECT a FROM u) AND b NOT IN (SELECT b FROM v))
SELECT id FROM t WHERE CASE WHEN a IN (SELECT a FROM u) THEN b > 1 ELSE b IS NULL END
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.a > t.a) THEN 'more' ELSE 'less' END AS c FROM t
SELECT id, a IN (SELECT a FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.b = u.b AND v.a = t.a)) AS e FROM t
SELECT count(*) AS n FROM t WHERE (a IN (SELECT a FROM u)) IS NULL
SELECT id, (1, 2) IN (SELECT a, b FROM u) AS e FROM t ==> SELECT id, (SELECT CASE WHEN bool_or(u.a = 1 AND u.b = 2) THEN TRUE WHEN count(*) > count(u.a = 1 AND u.b = 2) THEN NULL ELSE FALSE END FROM u) AS e FROM t
SELECT id, 1 IN (SELECT a FROM u WHERE u.b = t.b) AS e, 2 < ANY (SELECT b FROM v) AS f FROM t

-- scalars
SELECT id, (SELECT max(b) FROM u) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT sum(b) FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT count(*) + sum(b) FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT coalesce(sum(b), -1) FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a < t.a) AS n FROM t
SELECT id, (SELECT sum(u.b + t.b) FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT sum(u.b) + t.b FROM u WHERE u.a = t.a) AS n FROM t
SELECT id, (SELECT t.a) AS n, (SELECT 1) AS o FROM t
SELECT id, (SELECT 5 WHERE t.a > 1) AS n FROM t
SELECT id, (SELECT max(b) FROM u WHERE u.a = t.a HAVING count(*) > 1) AS m FROM t
SELECT id, (SELECT max(b) FROM u HAVING count(*) > t.a) AS m FROM t
SELECT id, (SELECT b FROM u WHERE u.a = t.a ORDER BY b DESC, id, s LIMIT 1) AS m FROM t
SELECT id, (SELECT b FROM u WHERE u.a > t.a ORDER BY b, id, s LIMIT 1) AS m FROM t
SELECT id, (SELECT b FROM u ORDER BY b, id, s LIMIT 1 OFFSET 1) AS m FROM t
SELECT id, (SELECT DISTINCT a FROM u WHERE u.a = t.a) AS m FROM t
SELECT id, (SELECT u.a FROM u WHERE u.a = t.a GROUP BY u.a) AS m FROM t
SELECT id, (SELECT count(*) FROM u JOIN v ON u.a = v.a WHERE u.b = t.b AND v.b = t.a) AS m FROM t
SELECT id, (SELECT count(v.a) FROM u LEFT JOIN v ON u.a = v.a AND v.b = t.b) AS m FROM t ==> SELECT id, (SELECT count(w.a) FROM u LEFT JOIN LATERAL (SELECT * FROM v WHERE u.a = v.a AND v.b = t.b) w ON TRUE) AS m FROM t
SELECT id, (SELECT count(*) FROM u LEFT JOIN v ON u.a = v.a WHERE u.b = t.b) AS m FROM t
SELECT id, (SELECT count(*) FROM (SELECT DISTINCT b FROM u WHERE u.a = t.a)) AS m FROM t
SELECT id, (SELECT count(*) FROM (SELECT DISTINCT b FROM u WHERE u.a <> t.a)) AS m FROM t
SELECT id, (SELECT max(n) FROM (SELECT count(*) AS n FROM u WHERE u.a = t.a GROUP BY b)) AS m FROM t
SELECT id, (SELECT sum(n) FROM (SELECT count(*) AS n FROM u WHERE u.a = t.a UNION ALL SELECT sum(b) FROM v WHERE v.b > t.b)) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a AND u.b > (SELECT avg(b) FROM v WHERE v.a = u.a)) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.b > (SELECT avg(b) FROM v WHERE v.a = t.a)) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.b > (SELECT count(*) FROM v WHERE v.a = t.a AND v.b = u.a)) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.b >= (SELECT count(*) FROM v WHERE v.a > t.a AND v.b < u.a)) AS m FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a IN (SELECT a FROM v WHERE v.b = t.b)) AS m FROM t
SELECT id, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY b) AS r FROM u WHERE u.a = t.a)) AS m FROM t
SELECT id, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY b) AS r FROM u WHERE u.a <= t.a)) AS m FROM t
SELECT id, (SELECT sum(r) FROM (SELECT count(*) OVER (PARTITION BY b) AS r FROM u WHERE u.a = t.a)) AS m FROM t
SELECT id FROM t WHERE b > (SELECT avg(b) FROM u WHERE u.a = t.a)
SELECT id FROM t WHERE b > (SELECT count(*) FROM u WHERE u.a = t.a)
SELECT id FROM t WHERE b = (SELECT max(b) FROM u) OR b = (SELECT min(b) FROM v WHERE v.a = t.a)
SELECT id FROM t WHERE coalesce((SELECT max(b) FROM u WHERE u.a = t.a), 9) > 2
SELECT id FROM t WHERE (SELECT max(b) FROM u WHERE u.a = t.a) IS NULL
SELECT a, sum(b) AS n FROM t GROUP BY a HAVING sum(b) > (SELECT count(*) FROM u WHERE u.a = t.a)
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) + count(*) AS n FROM t GROUP BY a
SELECT id, (SELECT max(b) FROM u WHERE u.a = t.a) AS x, (SELECT min(b) FROM v WHERE v.a < t.a) AS y, (SELECT count(*) FROM u WHERE u.b < t.b) AS z FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a IS NOT DISTINCT FROM t.a) AS n FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = t.b) AS n FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.a + u.b = t.a) AS n FROM t
SELECT x.id, (SELECT count(*) FROM u WHERE u.a = x.c) AS n FROM (SELECT id, (SELECT max(b) FROM v WHERE v.a = t.a) AS c FROM t) x

-- lateral
SELECT t.id, x.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) x
SELECT t.id, x.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a) x
SELECT t.id, x.c FROM t, LATERAL (SELECT u.b + t.b AS c FROM u WHERE u.a = t.a) x
SELECT t.id, x.c FROM t LEFT JOIN LATERAL (SELECT u.b + t.b AS c FROM u WHERE u.a = t.a) x ON TRUE
SELECT t.id, x.b FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.a > t.a) x ON TRUE
SELECT t.id, x.b FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.a = t.a) x ON x.b > t.b
SELECT t.id, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) x ON x.n > 1
SELECT t.id, x.n FROM t JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) x ON x.n > 0
SELECT t.id, x.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a ORDER BY b, id, s LIMIT 2) x
SELECT t.id, x.b FROM t, LATERAL (SELECT b FROM u WHERE u.a <> t.a ORDER BY b DESC, id, s LIMIT 2 OFFSET 1) x
SELECT t.id, x.b, y.c FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a) x, LATERAL (SELECT v.b + x.b AS c FROM v WHERE v.a = t.a) y
SELECT t.id, x.b, x.n FROM t, LATERAL (SELECT b, count(*) AS n FROM u WHERE u.a <= t.a GROUP BY b) x
SELECT t.id, x.c FROM t, LATERAL (SELECT t.a + 1 AS c) x WHERE x.c > 2
SELECT t.id, x.c FROM t, LATERAL (SELECT t.a + 1 AS c WHERE t.b > 1) x
SELECT t.id, x.c FROM t, LATERAL (SELECT u.b AS c FROM u WHERE u.a = t.a UNION SELECT v.b FROM v WHERE v.a > t.a) x

-- plain
SELECT t.id, u.b FROM t, u WHERE t.a = u.a AND t.b > 1 AND u.b < 3
SELECT t.id, u.b FROM t LEFT JOIN u ON t.a = u.a AND u.b > 1 AND t.b > 1 WHERE t.id > 1
SELECT t.id, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1
SELECT t.id, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1 OR u.b IS NULL
SELECT t.id, u.b, v.b AS c FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN v ON v.a = u.b WHERE v.b = 1
SELECT t.id, u.b, v.b AS c FROM t LEFT JOIN u ON t.a = u.a JOIN v ON v.a = u.b
SELECT t.id, u.b FROM t FULL JOIN u ON t.a = u.a WHERE t.b > 1
SELECT t.id, u.b FROM t RIGHT JOIN u ON t.a = u.a WHERE NOT (u.b BETWEEN t.b AND 2)
SELECT * FROM (SELECT a, count(*) AS n, sum(b) AS m FROM t GROUP BY a) x WHERE a > 1 AND n > 1
SELECT * FROM (SELECT a, b, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM t) x WHERE a > 1 AND r > 1
SELECT * FROM (SELECT a, b FROM t UNION ALL SELECT b, a FROM u) x WHERE a > 1
SELECT a FROM (SELECT DISTINCT a, b FROM t) x
SELECT n FROM (SELECT DISTINCT a, b AS n FROM t WHERE s = 'x') x WHERE a > 1
SELECT count(*) AS n FROM (SELECT a, b FROM t ORDER BY a, b, id LIMIT 4) x WHERE b > 1
SELECT c + c AS d FROM (SELECT a * b AS c FROM t) x WHERE c > 1
SELECT x.s FROM (SELECT s, a FROM t) x, (SELECT a, b FROM u) y WHERE x.a = y.a AND x.a + y.b > 2
SELECT a FROM t EXCEPT SELECT a FROM u
SELECT a FROM t WHERE 1 = 2
SELECT t.id FROM t, u, v WHERE t.a = u.a AND u.b = v.b AND v.a = t.b AND t.s = v.s

-- chosen groups
SELECT sum(t.b) AS n FROM t JOIN u ON t.a = u.a WHERE u.s = 'x' AND t.b < (SELECT 2 * avg(w.b) FROM t w WHERE w.a = u.a)
SELECT t.id, u.b FROM t, u, v WHERE t.a = u.a AND u.b = v.b AND t.s LIKE 'x%' AND v.s = 'y' AND u.id = (SELECT min(w.id) FROM u w JOIN v m ON w.b = m.b WHERE m.s = 'y' AND w.a = t.a)
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t WHERE s IN ('x', 'z')
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a AND u.b = t.b) AS n FROM t WHERE s = 'x' AND id = 1
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t WHERE a = 1
SELECT id, (SELECT count(*) FROM u WHERE u.a IS NOT DISTINCT FROM t.a) AS n FROM t WHERE s = 'x'
SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t WHERE a IN (SELECT a FROM v WHERE s = 'x')
SELECT id FROM t WHERE a IN (SELECT a FROM v WHERE s = 'x') AND b >= (SELECT sum(b) FROM u WHERE u.a = t.a AND u.id = t.id)
SELECT id FROM t WHERE a NOT IN (SELECT a FROM v WHERE s = 'x' AND a IS NOT NULL) AND b >= (SELECT min(b) FROM u WHERE u.a = t.a)
SELECT t.id, v.b FROM t JOIN v ON v.a = t.b WHERE v.s = 'x' AND t.id >= (SELECT min(b) FROM u WHERE u.a = t.b)
SELECT id FROM t WHERE s = 'x' AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a GROUP BY u.a HAVING count(*) > 1)
SELECT id FROM t WHERE s = 'x' AND a NOT IN (SELECT a FROM u GROUP BY a HAVING count(*) > 1)
SELECT id FROM t WHERE s = 'x' AND a IN (SELECT a FROM u GROUP BY a HAVING count(*) > 1)
SELECT x.a, x.n, t.id FROM (SELECT a, count(*) AS n FROM u GROUP BY a) x JOIN t ON t.a = x.a WHERE t.s = 'x'
SELECT x.a, x.n, t.id FROM (SELECT a, count(*) AS n FROM u GROUP BY a) x LEFT JOIN t ON t.a = x.a AND t.s = 'x'
SELECT x.a, x.n, t.id FROM t LEFT JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) x ON t.a = x.a AND t.s = 'x'
SELECT x.a, x.n, t.id FROM t FULL JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) x ON t.a = x.a AND t.s = 'x'
SELECT y.id, x.n FROM (SELECT * FROM t WHERE s = 'x') y FULL JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) x ON y.a = x.a
SELECT t.id, x.n FROM t LEFT JOIN v ON v.b = t.b AND v.s = 'x' LEFT JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) x ON x.a = v.a
SELECT t.id, x.n FROM t JOIN (SELECT a, count(*) AS n FROM (SELECT a, b FROM u WHERE b > 1 UNION ALL SELECT b, a FROM v) w GROUP BY a) x ON x.a = t.a WHERE t.s = 'x'
SELECT t.id, x.n FROM t JOIN (SELECT u.a, count(v.id) AS n FROM u LEFT JOIN v ON v.b = u.b GROUP BY u.a) x ON x.a = t.a WHERE t.s = 'x'
SELECT t.id, x.n FROM t JOIN (SELECT v.a, count(*) AS n FROM u LEFT JOIN v ON v.b = u.b GROUP BY v.a) x ON x.a = t.a WHERE t.s = 'x'
SELECT t.id, x.n FROM t JOIN (SELECT a, max(r) AS n FROM (SELECT a, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM u) w GROUP BY a) x ON x.a = t.a WHERE t.s = 'x'
SELECT t.id, x.n FROM t JOIN (SELECT a, max(r) AS n FROM (SELECT a, rank() OVER (PARTITION BY b ORDER BY a) AS r FROM u) w GROUP BY a) x ON x.a = t.a WHERE t.s = 'x'
SELECT t.id, x.n FROM t JOIN (SELECT a, count(*) AS n FROM (SELECT a, b FROM u ORDER BY a, b, id LIMIT 3) w GROUP BY a) x ON x.a = t.a WHERE t.s = 'x'
SELECT x.n, y.m FROM (SELECT a, count(*) AS n FROM u GROUP BY a) x JOIN (SELECT a, sum(b) AS m FROM v GROUP BY a) y ON x.a = y.a JOIN t ON t.a = x.a WHERE t.s = 'x'

-- what every branch of an OR has
SELECT t.id, u.b FROM t, u WHERE (t.a = u.a AND t.b > 1 AND u.b < 3) OR (u.b < 3 AND t.a = u.a AND u.id = 1)
SELECT t.id, u.b FROM t LEFT JOIN u ON (t.a = u.a AND u.b > 1) OR (t.a = u.a AND u.s = 'x' AND t.b IS NULL)
SELECT t.id, u.b FROM t FULL JOIN u ON (t.a = u.a AND u.b > 1) OR (t.a = u.a AND t.s = 'x')
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE (t.a = u.a AND u.b > t.b) OR (t.a = u.a AND u.s = 'x'))
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE (t.a = u.a AND u.b > t.b) OR (t.a = u.a AND u.s = t.s))
SELECT id, (SELECT count(*) FROM u WHERE (t.a = u.a AND u.b > 1) OR (t.a = u.a AND u.s = 'x')) AS n FROM t
SELECT id FROM t WHERE b NOT IN (SELECT b FROM u WHERE (t.a = u.a AND u.id > 1) OR (u.s = 'x' AND t.a = u.a))
SELECT id, NOT ((a = 1 AND b > 1) OR (a = 1 AND s = 'x')) AS m FROM t WHERE NOT ((a = 1 AND b > 1) OR (a = 1 AND s = 'x'))
SELECT id FROM t WHERE (a = 1 AND b > 2) OR a = 1 OR (a = 1 AND s IS NULL)
SELECT id FROM t WHERE (a = 1 AND TRUE) OR (b = 2 AND a = 1 AND a = 1)
SELECT a, count(*) AS n FROM t GROUP BY a HAVING (count(*) > 1 AND a > 1) OR (count(*) > 1 AND max(b) = 3)
SELECT id FROM t WHERE (a IN (SELECT a FROM u) AND b = 1) OR (a IN (SELECT a FROM u) AND b = 2)
