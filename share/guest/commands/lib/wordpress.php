<?php
/**
 * Begins a command and loads WordPress.
 *
 * A program requires it in the global scope, where WordPress and its plugins keep their variables.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/entry.php';

begin();
require wordpress();
