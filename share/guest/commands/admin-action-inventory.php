<?php
/**
 * Command `wordpress.admin-action-inventory`: lists what requests to the admin area can trigger: actions of
 * admin-ajax.php and admin-post.php with their callbacks, and the forms and links of pages.
 *
 * Each page is loaded in its own process, at most `max-pages` of them (default 10, 0 for none). The result
 * names pages that fail.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/admin-actions.php';
require __DIR__ . '/lib/admin-area.php';

finish( admin_actions( ... ) );
