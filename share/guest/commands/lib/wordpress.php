<?php
/**
 * Starts a command and loads WordPress.
 *
 * A program must require it in the global scope, where WordPress and its plugins store their variables.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/entry.php';

begin();
require wordpress();
