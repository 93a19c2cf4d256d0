<?php
/**
 * Empty bootstrap file. PHPUnit loads it instead of the one in the plugin's configuration, which is ignored.
 *
 * @package WPCodebox
 */

declare(strict_types=1);
