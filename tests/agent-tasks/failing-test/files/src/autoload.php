<?php

declare( strict_types=1 );

require_once __DIR__ . '/Version.php';
require_once __DIR__ . '/Constraint.php';
