<?php
/* Plugin Name: Pages of the browsing tests */
