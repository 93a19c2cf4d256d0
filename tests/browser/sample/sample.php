<?php
/**
 * Plugin Name: Sample
 * Description: What the browser suite lets agents work on.
 * Version:     1.0
 * License:     GPL-2.0-or-later
 */

function sample_greeting() {
	return 'helo';
}
