<?php
/* Plugin Name: Pages with faults */

add_action(
	'template_redirect',
	static function () {
		switch ( $_GET['fault'] ?? '' ) {
			case 'fatal':
				faults_is_not_defined();
				break;
			case 'late':
				echo '<!doctype html><title>Late</title>';
				flush();
				throw new LogicException( 'too late' );
			case 'busy':
				status_header( 503 );
				exit( '<title>Busy</title>' );
			case 'warn':
				trigger_error( 'careful', E_USER_WARNING );
				break;
			case 'behind':
				exit( '<!doctype html><title>Behind</title><script>fetch("/?fault=fatal").then((answer) => answer.text()).then(() => document.write("<p id=done>done</p>"))</script>' );
			case 'images':
				exit( '<!doctype html><title>Images</title><img src="https://denied.test/avatar.png">' );
			case 'own-image':
				exit( '<!doctype html><title>Images</title><img src="/?fault=busy">' );
		}
	}
);
