<?php
/**
 * Empty bootstrap file that replaces the ignored one of a configuration.
 *
 * @package WPCodebox
 */

declare(strict_types=1);
