<?php
/**
 * Stands in for the bootstrap file of a configuration that is passed over.
 *
 * @package WPCodebox
 */

declare(strict_types=1);
