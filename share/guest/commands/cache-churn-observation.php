<?php
/**
 * Command `wordpress.cache-churn-observation`: observes what one REST request changes in the object cache,
 * options and transients.
 *
 * The object cache is observed only when it is WordPress's built-in one, which lives for one request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/observation.php';

begin();
$codebox_watch = observer();
require wordpress();
require __DIR__ . '/lib/churn.php';
finish( static fn ( Arguments $arguments ): array => observe_churn( $arguments, $codebox_watch ) );
